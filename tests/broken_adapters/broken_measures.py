"""Adapters that each break one promise about measuring."""

from __future__ import annotations

from typing import Any

import attrs

from payments_core.storage.damaged_records import try_decode
from payments_core.storage.port import Measure
from payments_core.storage.records import Record
from tests.broken_adapters.broken import Wrapped


class AllPartitionsAreMeasured(Wrapped):
    def measure(self, partition: str, kind: type[Record], after: str | None, limit: int) -> Measure:
        names = {place[0] for place, rows in self._tables.items() if rows}
        found = [
            super(AllPartitionsAreMeasured, self).measure(n, kind, after, limit) for n in names
        ]
        end = max((one.next for one in found if one.next is not None), default=None)
        return Measure(sum(one.bytes for one in found), end)


class CharactersAreMeasured(Wrapped):
    """As `length` counts them in SQL."""

    def measure(self, partition: str, kind: type[Record], after: str | None, limit: int) -> Measure:
        sound = super().measure(partition, kind, after, limit)
        rows = self._tables[partition, kind.collection.name].values()
        wide = sum(len(row.body) - len(row.body.decode()) for row in rows)
        return attrs.evolve(sound, bytes=sound.bytes - wide)


class DamagedRowsAreNotMeasured(Wrapped):
    """The records are measured, and not the rows."""

    def measure(self, partition: str, kind: type[Record], after: str | None, limit: int) -> Measure:
        sound = super().measure(partition, kind, after, limit)
        rows = self._tables[partition, kind.collection.name].values()
        torn = [len(row.body) for row in rows if try_decode(kind, row.body) is None]
        return attrs.evolve(sound, bytes=max(0, sound.bytes - sum(torn)))


class OldBodiesAreMeasured(Wrapped):
    """A size is read once for each row."""

    def _apply(self, partition: str, tx: Any) -> None:
        super()._apply(partition, tx)
        self.__dict__.setdefault("first", {}).update(
            {
                (partition, *place): row.body
                for place, row in tx.writes.items()
                if row is not None and row.version == 1
            }
        )

    def measure(self, partition: str, kind: type[Record], after: str | None, limit: int) -> Measure:
        name = kind.collection.name
        rows = self._tables[partition, name]
        before = {id: self.__dict__["first"][partition, name, id] for id in rows}
        return Measure(sum(len(body) for body in before.values()), None)


class MeasuredPagesHaveNoLimit(Wrapped):
    def measure(self, partition: str, kind: type[Record], after: str | None, limit: int) -> Measure:
        return super().measure(partition, kind, after, 1_000_000)


class MeasuredPagesOverlap(Wrapped):
    """The last row of a page is the first of the next."""

    def measure(self, partition: str, kind: type[Record], after: str | None, limit: int) -> Measure:
        sound = super().measure(partition, kind, after, limit)
        row = self._tables[partition, kind.collection.name].get(after or "")
        return attrs.evolve(sound, bytes=sound.bytes + (len(row.body) if row else 0))
