"""Adapters that each break one promise of seeing all partitions at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import attrs

from payments_core.storage.damaged_records import try_decode
from payments_core.storage.memory.maintenance import MemoryExclusiveAccess
from tests.broken_adapters.broken import Wrapped


class WalksOnePartition(Wrapped):
    def scan_page(self, kind: Any, *, after: Any = None, limit: int = 1_000) -> Sequence[Any]:
        first = super().scan_page(kind, limit=1)
        found = super().scan_page(kind, after=after, limit=limit)
        return [one for one in found if one.partition == first[0].partition]


class WalksById(Wrapped):
    def scan_page(self, kind: Any, *, after: Any = None, limit: int = 1_000) -> Sequence[Any]:
        access = super().scan_page(kind)
        by_id = sorted(access, key=lambda one: (one.record.id, one.partition))
        behind = [one for one in by_id if not after or (one.record.id, one.partition) > after[::-1]]
        return behind[:limit]


class WalkStopsAtAnId(Wrapped):
    """It goes on behind the last id, whatever the partition."""

    def scan_page(self, kind: Any, *, after: Any = None, limit: int = 1_000) -> Sequence[Any]:
        found = super().scan_page(kind, after=after)
        return [one for one in found if not after or one.record.id > after[1]][:limit]


class ReadsOnePartition(Wrapped):
    def read_rows(self, kind: Any, **options: Any) -> Sequence[Any]:
        return [row for row in super().read_rows(kind, **options) if row.partition == "env_b"]


class ReadsSoundRowsOnly(Wrapped):
    def read_rows(self, kind: Any, **options: Any) -> Sequence[Any]:
        found = super().read_rows(kind, **options)
        return [row for row in found if try_decode(kind, row.body) is not None]


class Through(MemoryExclusiveAccess):
    """What a subclass overrides is broken."""


class BrokenAlone(Wrapped):
    through_alone: type[Through] = Through

    @contextmanager
    def lock_exclusively(self) -> Iterator[Any]:
        with self._lock, super().lock_exclusively():
            access = self.through_alone(self._tables, self._uniques)
            try:
                yield access
            except BaseException:
                access.roll_back()
                raise
            access.raise_failure()


class RowsForgetColumns(BrokenAlone):
    class through_alone(Through):
        def read_rows(self, kind: Any, **options: Any) -> Any:
            return [attrs.evolve(row, columns=()) for row in super().read_rows(kind, **options)]


class LoadBeginsVersionsAnew(BrokenAlone):
    class through_alone(Through):
        def load(self, kind: Any, rows: Any) -> None:
            super().load(kind, [attrs.evolve(row, version=1) for row in rows])


class LoadTakesNoUniqueKey(BrokenAlone):
    class through_alone(Through):
        def load(self, kind: Any, rows: Any) -> None:
            before = dict(self._uniques)
            super().load(kind, rows)
            for key in self._uniques.keys() - before.keys():
                del self._uniques[key]

        def roll_back(self) -> None:
            pass


class LoadReplacesWhatIsThere(BrokenAlone):
    class through_alone(Through):
        def load(self, kind: Any, rows: Any) -> None:
            for row in rows:
                self._tables[row.partition, kind.collection.name].pop(row.id, None)
            super().load(kind, rows)


class LoadIsNotUndone(BrokenAlone):
    class through_alone(Through):
        def roll_back(self) -> None:
            pass


class SwallowedLoadIsKept(BrokenAlone):
    class through_alone(Through):
        def raise_failure(self) -> None:
            pass


class NotAlone(Wrapped):
    @contextmanager
    def lock_exclusively(self) -> Iterator[Any]:
        yield MemoryExclusiveAccess(self._tables, self._uniques)


class ClosedIsStillSeen(Wrapped):
    @contextmanager
    def lock_exclusively(self) -> Iterator[Any]:
        self._closed = False
        with super().lock_exclusively() as access:
            yield access
