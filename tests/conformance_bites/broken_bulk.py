"""Adapters that each break one promise of reading or writing many records at once."""

from __future__ import annotations

from typing import Any

import attrs

from tests.conformance_bites.broken import Through, Wrapped


class WritesManyForgetsOne(Wrapped):
    class through(Through):
        def write(self, inserts: Any, replaces: Any, deletes: Any) -> None:
            for record in replaces[:-1]:
                self.inner.replace(record)
            for record in deletes:
                self.inner.delete(record)
            for record in inserts:
                self.inner.insert(record)


class WritesManyOverAnything(Wrapped):
    class through(Through):
        def write(self, inserts: Any, replaces: Any, deletes: Any) -> None:
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
