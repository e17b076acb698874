"""A memory storage that compares what a transaction announced with what it read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import attrs

from payments_core.storage import one_by_one
from payments_core.storage.memory.adapter import MemoryStorage, Weakness
from payments_core.storage.port import Page, Transaction
from payments_core.storage.reads import Get, Lock, Read
from payments_core.storage.records import R, Record

T = TypeVar("T")
ReadKey = tuple[type[Record], Any]
"""A record by its id, or a page by its index and key."""


@attrs.define
class Comparison:
    """What a transaction announced, and what it read from then on, with the locks of records."""

    announced: dict[ReadKey, Lock] = attrs.field(factory=dict)
    read: dict[ReadKey, Lock] = attrs.field(factory=dict)

    def require_equal_locks(self) -> None:
        """A record that is locked otherwise than announced takes its locks in another order, or
        waits twice."""
        for record, lock in self.announced.items():
            assert self.read.get(record, lock) == lock, (
                f"{record} is announced with the lock {lock}, and read with {self.read[record]}"
            )


class AnnouncedStorage(MemoryStorage):
    """A memory whose transactions lock what they announce as they announced it."""

    def __init__(self, weakness: Weakness | None = None) -> None:
        super().__init__(weakness)
        self.comparisons: list[Comparison] = []
        """Of the works that ended, in order; a test empties it."""

    def transact(self, partition: str, work: Callable[[Transaction], T]) -> T:
        def compared(tx: Transaction) -> T:
            rows = _Compared(tx)
            result = work(rows)
            rows.comparison.require_equal_locks()
            self.comparisons = [*self.comparisons[-99:], rows.comparison]
            return result

        return super().transact(partition, compared)


class _Compared:
    """A transaction that notes its reads."""

    def __init__(self, tx: Transaction) -> None:
        self._tx = tx
        self.comparison = Comparison()
        self._missed: set[ReadKey] = set()

    def get(self, kind: type[R], id: str, *, for_update: bool = False) -> R | None:
        found = self._tx.get(kind, id, for_update=for_update)
        read, announced = self.comparison.read, self.comparison.announced.get((kind, id))
        if not for_update:
            read.setdefault((kind, id), "none")
            if found is None:
                self._missed.add((kind, id))
        elif announced == "shared" and (kind, id) in self._missed:
            read[kind, id] = "shared"  # `lock_shared` of a record that is absent, or seems to be
        else:
            read[kind, id] = "exclusive"
        return found

    get_many, write = one_by_one.get_many, one_by_one.write

    def find(self, kind: type[R], index: str, key: Any = (), **more: Any) -> Page[R]:
        self.comparison.read[kind, (index, tuple(key))] = "none"
        return self._tx.find(kind, index, key, **more)

    def count(self, *args: Any, **more: Any) -> int:
        return self._tx.count(*args, **more)

    def read_ahead(self, *reads: Read) -> None:
        self.comparison.read.clear()  # it came before, as the jobs of a batch do
        for one in reads:
            if isinstance(one, Get):
                self.comparison.announced[one.kind, one.id] = one.lock
            else:
                self.comparison.announced[one.kind, (one.index, one.key)] = "none"
        self._tx.read_ahead(*reads)

    def hold(self, record: Record) -> None:
        if self.comparison.read.get((type(record), record.id)) == "none":
            self.comparison.read[type(record), record.id] = "shared"
        self._tx.hold(record)

    def insert(self, record: Record) -> None:
        self._tx.insert(record)

    def replace(self, record: Record) -> None:
        self._tx.replace(record)

    def delete(self, record: Record) -> None:
        self._tx.delete(record)


def require_as_announced(comparisons: Sequence[Comparison], foreign: set[type[Record]]) -> int:
    """How many transactions read what they announced and nothing else.

    Those that announced only records of the `foreign` kinds, by which a commit confirms who calls,
    do not say what their decisions read, and are passed over.
    """
    told = [one for one in comparisons if any(kind not in foreign for kind, _ in one.announced)]
    for one in told:
        assert one.read == one.announced, (one.read, one.announced)
    return len(told)
