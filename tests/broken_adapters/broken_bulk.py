"""Adapters that each break one promise of reading or writing many records at once."""

from __future__ import annotations

from typing import Any

import attrs

from payments_core.storage.reads import Find, Get
from tests.broken_adapters.broken import Through, Wrapped


class WritesManyForgetsOne(Wrapped):
    class through(Through):
        def write(self, inserts: Any, replaces: Any = (), deletes: Any = ()) -> None:
            for record in replaces[:-1]:
                self.inner.replace(record)
            for record in deletes:
                self.inner.delete(record)
            for record in inserts:
                self.inner.insert(record)


class WritesManyOverAnything(Wrapped):
    class through(Through):
        def write(self, inserts: Any, replaces: Any = (), deletes: Any = ()) -> None:
            for record in replaces:
                known = self.inner.get(type(record), record.id, for_update=True)
                self.inner.replace(attrs.evolve(record, version=known.version))
            for record in deletes:
                self.inner.delete(self.inner.get(type(record), record.id, for_update=True))
            for record in inserts:
                self.inner.insert(record)


class ReadsManyMissesSome(Wrapped):
    class through(Through):
        def get_many(self, kind: Any, ids: Any, *, for_update: bool = False) -> Any:
            some = sorted(ids)[:-2]
            found = ((id, self.inner.get(kind, id, for_update=for_update)) for id in some)
            return {id: record for id, record in found if record is not None}


class CountsFromTheStart(Wrapped):
    class through(Through):
        def count(
            self, kind: Any, index: str, key: Any, *, where: Any, after: Any, limit: int
        ) -> int:
            return len(self.inner.find(kind, index, key, where=where, limit=limit).records)


class ReadsAheadForGood(Wrapped):
    """What was read ahead is taken for what is there, whatever was written since."""

    class through(Through):
        def __init__(self, inner: Any) -> None:
            super().__init__(inner)
            self.known: dict[Any, Any] = {}

        def read_ahead(self, *reads: Any) -> None:
            for one in reads:
                if isinstance(one, Get):
                    self.known[one.kind, one.id] = self.inner.get(one.kind, one.id)

        def get(self, kind: Any, id: str, *, for_update: bool = False) -> Any:
            if (kind, id) in self.known:
                return self.known[kind, id]
            return self.inner.get(kind, id, for_update=for_update)


class ReadsPagesAheadForGood(Wrapped):
    class through(Through):
        def __init__(self, inner: Any) -> None:
            super().__init__(inner)
            self.known: dict[Any, Any] = {}

        def read_ahead(self, *reads: Any) -> None:
            for one in reads:
                if isinstance(one, Find):
                    page = self.inner.find(one.kind, one.index, one.key, limit=one.limit)
                    self.known[one.kind, one.index] = page

        def find(self, kind: Any, index: str, key: Any = (), **more: Any) -> Any:
            if (kind, index) in self.known:
                return self.known[kind, index]
            return self.inner.find(kind, index, key, **more)


class ReadsAheadInTheWrongOrder(Wrapped):
    class through(Through):
        def __init__(self, inner: Any) -> None:
            super().__init__(inner)
            self.known: dict[Any, Any] = {}

        def read_ahead(self, *reads: Any) -> None:
            gets = [one for one in reads if isinstance(one, Get)]
            for one, other in zip(gets, reversed(gets), strict=True):
                self.known[one.kind, one.id] = self.inner.get(other.kind, other.id)

        def get(self, kind: Any, id: str, *, for_update: bool = False) -> Any:
            if (kind, id) in self.known:
                return self.known[kind, id]
            return self.inner.get(kind, id, for_update=for_update)


class ReadsAheadMissesTheEndOfALongList(Wrapped):
    class through(Through):
        def __init__(self, inner: Any) -> None:
            super().__init__(inner)
            self.missed: set[Any] = set()

        def read_ahead(self, *reads: Any) -> None:
            self.missed = {(one.kind, one.id) for one in reads[16:] if hasattr(one, "id")}

        def get(self, kind: Any, id: str, *, for_update: bool = False) -> Any:
            if (kind, id) in self.missed:
                return None
            return self.inner.get(kind, id, for_update=for_update)


class ReadsApartFromLongAgo(Wrapped):
    """What was read apart once is taken for what is there, whatever was committed since."""

    def __init__(self, record_types: Any) -> None:
        super().__init__(record_types)
        self.known: dict[Any, Any] = {}

    def read_apart(self, partition: str, work: Any) -> Any:
        return self.read(partition, lambda snapshot: work(_Remembered(snapshot, self.known)))


class _Remembered(Through):
    def __init__(self, inner: Any, known: dict[Any, Any]) -> None:
        super().__init__(inner)
        self.known = known

    def get(self, kind: Any, id: str, *, for_update: bool = False) -> Any:
        return self.known.setdefault((kind, id), self.inner.get(kind, id))


class HoldsWhatItRead(Wrapped):
    """A version that was read counts for `hold`, whatever was written since."""

    class through(Through):
        def __init__(self, inner: Any) -> None:
            super().__init__(inner)
            self.versions: dict[Any, int] = {}

        def get(self, kind: Any, id: str, *, for_update: bool = False) -> Any:
            record = self.inner.get(kind, id, for_update=for_update)
            if record is not None:
                self.versions[kind, id] = record.version
            return record

        def hold(self, record: Any) -> None:
            if self.versions.get((type(record), record.id)) != record.version:
                self.inner.hold(record)


class WritesManyInTheWrongOrder(Wrapped):
    """As one statement for all may: a key is taken before it is given."""

    class through(Through):
        def write(self, inserts: Any, replaces: Any = (), deletes: Any = ()) -> None:
            for record in reversed(replaces):
                self.inner.replace(record)
            for record in deletes:
                self.inner.delete(record)
            for record in inserts:
                self.inner.insert(record)
