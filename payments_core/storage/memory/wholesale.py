"""All partitions at once, in memory (`wholesale.py`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from payments_core.storage.memory.rows import Row as Stored
from payments_core.storage.memory.rows import Tables, UniqueKey, row_of
from payments_core.storage.port import Located, UniqueConflict
from payments_core.storage.records import R, Record
from payments_core.storage.wholesale import BATCH, Alone, Place, Row, records_of


def walk(tables: Tables, kind: type[R], after: Place | None, limit: int) -> list[Located[R]]:
    """What `Wholesale.walk` promises, under the storage's lock."""

    def behind(after: Place | None) -> list[tuple[str, str, bytes]]:
        found = _behind(tables, kind, after, limit)
        return [(partition, row.id, row.body) for partition, row in found]

    return records_of(kind, after, behind)


@contextmanager
def alone(tables: Tables, uniques: dict[UniqueKey, str]) -> Iterator[Alone]:
    """What `Wholesale.alone` promises, under the storage's lock."""
    everything = MemoryAlone(tables, uniques)
    try:
        yield everything
    except BaseException:
        everything.undo()
        raise
    everything.finish()


class MemoryAlone:
    """The tables of a storage whose lock is held."""

    def __init__(self, tables: Tables, uniques: dict[UniqueKey, str]) -> None:
        self._tables = tables
        self._uniques = uniques
        self._loaded: list[tuple[tuple[str, str], Stored]] = []
        self._failure: BaseException | None = None

    def rows(
        self, kind: type[Record], *, after: Place | None = None, limit: int = BATCH
    ) -> Sequence[Row]:
        return [
            Row(partition, row.id, row.version, tuple(row.columns.values()), row.body.decode())
            for partition, row in _behind(self._tables, kind, after, limit)
        ]

    def load(self, kind: type[Record], rows: Sequence[Row]) -> None:
        try:
            for row in rows:
                self._load(kind, row)
        except BaseException as error:
            self._failure = error
            raise

    def _load(self, kind: type[Record], row: Row) -> None:
        collection = kind.collection
        made = row_of(row.partition, row.read(kind))
        stored = Stored(
            row.id,
            row.version,
            row.body.encode(),
            dict(zip(collection.columns, row.columns, strict=True)),
            made.uniques,
        )
        table = self._tables[row.partition, collection.name]
        if row.id in table:
            raise UniqueConflict(collection.name, "id")
        for unique in stored.uniques:
            if unique in self._uniques:
                raise UniqueConflict(collection.name, unique[2])
        table[row.id] = stored
        self._uniques.update(dict.fromkeys(stored.uniques, row.id))
        self._loaded.append(((row.partition, collection.name), stored))

    def finish(self) -> None:
        """Raise what ended it, should it have been swallowed."""
        if self._failure is not None:
            self.undo()
            raise self._failure

    def undo(self) -> None:
        """Take out what was loaded."""
        for place, stored in self._loaded:
            del self._tables[place][stored.id]
            for unique in stored.uniques:
                del self._uniques[unique]
        self._loaded.clear()


def _behind(
    tables: Tables, kind: type[Record], after: Place | None, limit: int
) -> list[tuple[str, Stored]]:
    """Rows of a collection behind a place, each with its partition."""
    found = [
        (partition, row)
        for (partition, name), table in tables.items()
        if name == kind.collection.name
        for row in table.values()
        if after is None or (partition, row.id) > after
    ]
    return sorted(found, key=lambda item: (item[0], item[1].id))[:limit]
