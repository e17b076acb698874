"""Adapters that each break one promise of seeing all partitions at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import attrs

from payments_core.storage.memory.wholesale import MemoryAlone
from tests.conformance_bites.broken import Wrapped


class WalksOnePartition(Wrapped):
    def walk(self, kind: Any, *, after: Any = None, limit: int = 1_000) -> Sequence[Any]:
        first = super().walk(kind, limit=1)
        found = super().walk(kind, after=after, limit=limit)
        return [one for one in found if one.partition == first[0].partition]


class WalksById(Wrapped):
    def walk(self, kind: Any, *, after: Any = None, limit: int = 1_000) -> Sequence[Any]:
        everything = super().walk(kind)
        by_id = sorted(everything, key=lambda one: (one.record.id, one.partition))
        behind = [one for one in by_id if not after or (one.record.id, one.partition) > after[::-1]]
        return behind[:limit]


class WalkStopsAtAnId(Wrapped):
    """It goes on behind the last id, whatever the partition."""

    def walk(self, kind: Any, *, after: Any = None, limit: int = 1_000) -> Sequence[Any]:
        found = super().walk(kind, after=after)
        return [one for one in found if not after or one.record.id > after[1]][:limit]


class Through(MemoryAlone):
    """What a subclass overrides is broken."""


class BrokenAlone(Wrapped):
    through_alone: type[Through] = Through

    @contextmanager
    def alone(self) -> Iterator[Any]:
        with self._lock, super().alone():
            everything = self.through_alone(self._tables, self._uniques)
            try:
                yield everything
            except BaseException:
                everything.undo()
                raise
            everything.finish()


class RowsForgetColumns(BrokenAlone):
    class through_alone(Through):
        def rows(self, kind: Any, **options: Any) -> Any:
            return [attrs.evolve(row, columns=()) for row in super().rows(kind, **options)]


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

        def undo(self) -> None:
            pass


class LoadReplacesWhatIsThere(BrokenAlone):
    class through_alone(Through):
        def load(self, kind: Any, rows: Any) -> None:
            for row in rows:
                self._tables[row.partition, kind.collection.name].pop(row.id, None)
            super().load(kind, rows)


class LoadIsNotUndone(BrokenAlone):
    class through_alone(Through):
        def undo(self) -> None:
            pass


class SwallowedLoadIsKept(BrokenAlone):
    class through_alone(Through):
        def finish(self) -> None:
            pass


class NotAlone(Wrapped):
    @contextmanager
    def alone(self) -> Iterator[Any]:
        yield MemoryAlone(self._tables, self._uniques)


class ClosedIsStillSeen(Wrapped):
    @contextmanager
    def alone(self) -> Iterator[Any]:
        self._closed = False
        with super().alone() as everything:
            yield everything
