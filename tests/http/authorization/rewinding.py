"""Storage that goes back to where it was, so that thousands of calls start from the same world."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

import attrs

from payments_core.storage.jobs import Job
from payments_core.storage.memory.adapter import MemoryStorage
from payments_core.storage.memory.transaction import MemoryTransaction, Tables, UniqueKey
from payments_core.storage.port import Transaction
from payments_core.tenants.record import KeyUse

T = TypeVar("T")


@attrs.frozen
class Mark:
    """All that was stored at a moment."""

    rows: Tables
    uniques: Mapping[UniqueKey, str]
    rings: Mapping[tuple[str, str], str]
    turns: Mapping[str, str]


class RewindableStorage(MemoryStorage):
    """Memory that can be marked and rewound.

    A mark shares its tables with the storage, which copies one before it writes to it: most of the
    calls between a mark and its rewinding write nothing.

    `meanwhile` is done once, ahead of the next transaction: what others do while a call is
    between its checks and its commit.
    """

    def __init__(self) -> None:
        super().__init__()
        self.meanwhile: Callable[[], object] | None = None
        self._marked: set[tuple[str, str]] = set()
        """The tables that a mark shares."""

    def transact(self, partition: str, work: Callable[[Transaction], T]) -> T:
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile is not None:
            meanwhile()
        return super().transact(partition, work)

    def mark(self) -> Mark:
        """All that is stored now."""
        self._marked = set(self._tables)
        uniques = dict(self._uniques)
        return Mark(dict(self._tables), uniques, dict(self._rings.lanes), dict(self._rings.turns))

    def rewind(self, mark: Mark) -> None:
        """Store what was stored at the mark, and nothing else."""
        self.meanwhile = None
        self._tables.clear()
        self._tables.update(mark.rows)
        self._marked = set(mark.rows)
        self._uniques, self._rings.lanes = dict(mark.uniques), dict(mark.rings)
        self._rings.turns = dict(mark.turns)

    def changed_since(self, mark: Mark) -> set[str]:
        """What differs from the mark, by collection and id; when keys were used does not count."""
        found: set[str] = set()
        for place in self._tables.keys() | mark.rows.keys():
            now, before = self._tables.get(place, {}), mark.rows.get(place, {})
            if now is before or place[1] == KeyUse.collection.name:
                continue
            ids = now.keys() | before.keys()
            found |= {f"{place[1]}/{id}" for id in ids if now.get(id) != before.get(id)}
        return found

    def _apply(self, partition: str, tx: MemoryTransaction) -> None:
        for collection, _ in tx.writes:
            self._leave_to_mark(partition, collection)
        super()._apply(partition, tx)

    def _store_job(self, partition: str, job: Job) -> None:
        self._leave_to_mark(partition, Job.collection.name)
        super()._store_job(partition, job)

    def _leave_to_mark(self, partition: str, collection: str) -> None:
        """Have a table of our own before it changes."""
        place = partition, collection
        if place in self._marked:
            self._marked.remove(place)
            self._tables[place] = dict(self._tables[place])
