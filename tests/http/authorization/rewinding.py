"""Storage that goes back to where it was, so that thousands of calls start from the same world."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

import attrs

from payments_core.storage.memory.adapter import MemoryStorage
from payments_core.storage.memory.transaction import StoredRow, UniqueKey
from payments_core.storage.port import Transaction
from payments_core.tenants.record import KeyUse

T = TypeVar("T")
Rows = Mapping[tuple[str, str], Mapping[str, StoredRow]]


@attrs.frozen
class Mark:
    """All that was stored at a moment."""

    rows: Rows
    uniques: Mapping[UniqueKey, str]
    rings: Mapping[tuple[str, str], str]
    turns: Mapping[str, str]


class RewindableStorage(MemoryStorage):
    """Memory that can be marked and rewound.

    `meanwhile` is done once, ahead of the next transaction: what others do while a call is
    between its checks and its commit.
    """

    def __init__(self) -> None:
        super().__init__()
        self.meanwhile: Callable[[], object] | None = None

    def transact(self, partition: str, work: Callable[[Transaction], T]) -> T:
        meanwhile, self.meanwhile = self.meanwhile, None
        if meanwhile is not None:
            meanwhile()
        return super().transact(partition, work)

    def mark(self) -> Mark:
        """All that is stored now."""
        rows = {place: dict(table) for place, table in self._tables.items()}
        return Mark(rows, dict(self._uniques), dict(self._rings.lanes), dict(self._rings.turns))

    def rewind(self, mark: Mark) -> None:
        """Store what was stored at the mark, and nothing else."""
        self.meanwhile = None
        self._tables.clear()
        self._tables.update({place: dict(table) for place, table in mark.rows.items()})
        self._uniques, self._rings.lanes = dict(mark.uniques), dict(mark.rings)
        self._rings.turns = dict(mark.turns)

    def changed_since(self, mark: Mark) -> set[str]:
        """What differs from the mark, by collection and id; when keys were used does not count."""
        found: set[str] = set()
        for place in self._tables.keys() | mark.rows.keys():
            now, before = self._tables.get(place, {}), mark.rows.get(place, {})
            if place[1] == KeyUse.collection.name or now == before:
                continue
            ids = now.keys() | before.keys()
            found |= {f"{place[1]}/{id}" for id in ids if now.get(id) != before.get(id)}
        return found
