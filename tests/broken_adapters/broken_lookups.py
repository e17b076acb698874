"""Adapters that each break one promise of `locate`, or of `next_due` after an instant."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import attrs

from payments_core.storage.memory.adapter import MemoryStorage
from payments_core.storage.memory.transaction import MemoryTransaction, StoredRow
from payments_core.storage.port import MAX_LOCATE_KEYS, LocatedRecord
from payments_core.storage.query_semantics import PrimaryKey, find_primary_keys
from tests.broken_adapters.broken import Kinds, Wrapped
from tests.broken_adapters.broken_reads import SnapshotDirty

# What is found.


class LocateStaysInOnePartition(Wrapped):
    def locate(self, kind: Any, lookup: str, keys: Any, **options: Any) -> Any:
        found = super().locate(kind, lookup, keys, **options)
        return [item for item in found if item.partition == "env_here"]


class LocateDropsKeys(Wrapped):
    def locate(self, kind: Any, lookup: str, keys: Any, **options: Any) -> Any:
        return super().locate(kind, lookup, keys[: MAX_LOCATE_KEYS - 1], **options)


class KeyTwiceLocatesTwice(Wrapped):
    def locate(self, kind: Any, lookup: str, keys: Any, **options: Any) -> Any:
        sound = super().locate
        found = [item for key in keys for item in sound(kind, lookup, [key], **options)]
        return sorted(found, key=lambda item: (item.partition, item.record.id))


class KeysMix(Wrapped):
    """Each column equals that of some key."""

    def locate(self, kind: Any, lookup: str, keys: Any, **options: Any) -> Any:
        mixed: list[tuple[Any, ...]] = [()]
        for values in zip(*keys, strict=True):
            mixed = [(*key, value) for key in mixed for value in values]
        return super().locate(kind, lookup, mixed, **options)


class LocateFoldsCase(Wrapped):
    def locate(self, kind: Any, lookup: str, keys: Any, **options: Any) -> Any:
        folded = [(fold(text),) for (text,) in keys for fold in (str, str.lower, str.upper)]
        return super().locate(kind, lookup, folded, **options)


class NullKeyLocatesNulls(Wrapped):
    def locate(self, kind: Any, lookup: str, keys: Any, **options: Any) -> Any:
        rows = dict(self._iter_rows(kind.collection.name))
        columns = {place: row.columns for place, row in rows.items()}
        places = find_primary_keys(kind.collection.lookup(lookup), keys, columns, (), None, 100)
        return [LocatedRecord(place[0], rows[place].read(kind)) for place in places]


class ImpossibleKeysFail(Wrapped):
    """As a driver fails on an integer that it cannot send."""

    def locate(self, kind: Any, lookup: str, keys: Any, **options: Any) -> Any:
        for key in keys:
            if any(isinstance(value, int) and value.bit_length() > 63 for value in key):
                raise OverflowError
        return super().locate(kind, lookup, keys, **options)


class AnythingMayBeAsked(Wrapped):
    """A number is taken for its digits, as a column of texts may do by itself."""

    def locate(self, kind: Any, lookup: str, keys: Any, **options: Any) -> Any:
        if lookup == "named":
            keys = [tuple(map(str, key)) for key in keys]
        return super().locate(kind, lookup, keys, **options)


class LocateIgnoresComparisons(Wrapped):
    def locate(self, kind: Any, lookup: str, keys: Any, *, where: Any = (), **options: Any) -> Any:
        return super().locate(kind, lookup, keys, **options)


class LocateComparesAfterTheLimit(Wrapped):
    def locate(self, kind: Any, lookup: str, keys: Any, *, where: Any = (), **options: Any) -> Any:
        fitting = super().locate(kind, lookup, keys, where=where)
        return [i for i in super().locate(kind, lookup, keys, **options) if i in fitting]


class LocateTakesNullsForUnequal(Wrapped):
    def locate(self, kind: Any, lookup: str, keys: Any, *, where: Any = (), **options: Any) -> Any:
        unequal = [item for item in where if item.operator == "!="]
        others = [item for item in where if item.operator != "!="]
        found = super().locate(kind, lookup, keys, where=others, **options)
        return [
            item
            for item in found
            if all(getattr(item.record, of.column) != of.value for of in unequal)
        ]


# In which order.


class LocatedByIdFirst(Wrapped):
    def locate(self, kind: Any, lookup: str, keys: Any, **options: Any) -> Any:
        found = super().locate(kind, lookup, keys, **options)
        return sorted(found, key=lambda item: (item.record.id, item.partition))


class LocatedKeyByKey(Wrapped):
    """In order for each key by itself."""

    def locate(self, kind: Any, lookup: str, keys: Any, **options: Any) -> Any:
        sound = super().locate
        return [item for key in keys for item in sound(kind, lookup, [key], **options)]


class LocateGoesOnByIdAlone(Wrapped):
    def locate(
        self, kind: Any, lookup: str, keys: Any, *, after: Any = None, **options: Any
    ) -> Any:
        limit = options.pop("limit", 100)
        found = super().locate(kind, lookup, keys, **options)
        return [item for item in found if after is None or item.record.id > after[1]][:limit]


class LocateRepeatsTheLast(Wrapped):
    def locate(
        self, kind: Any, lookup: str, keys: Any, *, after: Any = None, **options: Any
    ) -> Any:
        before = after and (after[0], after[1][:-1])
        return super().locate(kind, lookup, keys, after=before, **options)


class LocateLooksForTheLast(Wrapped):
    """And finds no place to go on where it has been deleted."""

    def locate(
        self, kind: Any, lookup: str, keys: Any, *, after: Any = None, **options: Any
    ) -> Any:
        if after and after not in dict(self._iter_rows(kind.collection.name)):
            return []
        return super().locate(kind, lookup, keys, after=after, **options)


# How fresh.


class Entered(Wrapped):
    """Remembers each row as it was first entered; what it does with that is broken."""

    def __init__(self, record_types: Kinds) -> None:
        super().__init__(record_types)
        self.entered: dict[str, dict[PrimaryKey, StoredRow]] = defaultdict(dict)

    def _apply(self, partition: str, tx: MemoryTransaction) -> None:
        super()._apply(partition, tx)
        for (collection, id), row in tx.writes.items():
            if row is not None:
                self.entered[collection].setdefault((partition, id), row)


class ReplacedIsFoundAsEntered(Entered):
    """A replaced record is found by the values that it was inserted with."""

    def _iter_rows(self, collection: str) -> Iterator[tuple[PrimaryKey, StoredRow]]:
        for place, row in super()._iter_rows(collection):
            first = self.entered[collection][place]
            yield place, attrs.evolve(row, columns=first.columns)


class DeletedIsStillFound(Entered):
    def _iter_rows(self, collection: str) -> Iterator[tuple[PrimaryKey, StoredRow]]:
        rows = dict(super()._iter_rows(collection))
        yield from {**self.entered[collection], **rows}.items()


class LocateStale(Wrapped):
    """Every third look is new; the others see what it saw."""

    looks = 0

    def locate(self, kind: Any, lookup: str, keys: Any, **options: Any) -> Any:
        with self._lock:
            self.looks += 1
            if self.looks % 3 == 1:
                self.old = MemoryStorage()
                for place, rows in self._tables.items():
                    self.old._tables[place] = dict(rows)
        return self.old.locate(kind, lookup, keys, **options)


class LocateDirty(SnapshotDirty):
    """What is located is as a writer has it, who has not committed."""

    def locate(self, kind: Any, lookup: str, keys: Any, **options: Any) -> Any:
        dirty = MemoryStorage()
        dirty._tables.update({**self._tables, **getattr(self, "_shown", {})})
        return dirty.locate(kind, lookup, keys, **options)


class DamagedRowStopsLocating(Wrapped):
    def locate(self, kind: Any, lookup: str, keys: Any, **options: Any) -> Any:
        return super().locate(kind, lookup, keys, **{**options, "on_damaged": None})


class DamagedRowIsNotToldOf(Wrapped):
    def locate(self, kind: Any, lookup: str, keys: Any, **options: Any) -> Any:
        return super().locate(
            kind, lookup, keys, **{**options, "on_damaged": lambda partition, id: None}
        )


# The next instant.


class NextDueIgnoresAfter(Wrapped):
    def next_due(self, queue: str, after: int | None = None) -> Any:
        return super().next_due(queue)


class NextDueIsNotLater(Wrapped):
    """The same instant comes again, and a caller that steps by it stays where it is."""

    def next_due(self, queue: str, after: int | None = None) -> Any:
        return super().next_due(queue, None if after is None else after - 1)


class NextDueOfTheFirstAlone(Wrapped):
    """What is due already hides what comes later."""

    def next_due(self, queue: str, after: int | None = None) -> Any:
        first = super().next_due(queue)
        return None if after is not None and first is not None and first <= after else first
