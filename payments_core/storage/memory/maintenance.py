"""All partitions at once, in memory (`storage/maintenance.py`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from payments_core.storage.maintenance import (
    BATCH,
    ExclusiveAccess,
    PrimaryKey,
    RecordRow,
    decode_page,
)
from payments_core.storage.memory.transaction import StoredRow as Stored
from payments_core.storage.memory.transaction import Tables, UniqueKey, to_stored_row
from payments_core.storage.port import LocatedRecord, UniqueConflict
from payments_core.storage.records import R, Record


def scan_page(
    tables: Tables, kind: type[R], after: PrimaryKey | None, limit: int
) -> list[LocatedRecord[R]]:
    """See `MaintenanceAccess.scan_page`; under the storage's lock."""

    def fetch_after(after: PrimaryKey | None) -> list[tuple[str, str, bytes]]:
        found = _rows_after(tables, kind, after, limit)
        return [(partition, row.id, row.body) for partition, row in found]

    return decode_page(kind, after, fetch_after)


def read_rows(
    tables: Tables, kind: type[Record], after: PrimaryKey | None, limit: int
) -> list[RecordRow]:
    """See `MaintenanceAccess.read_rows`; under the storage's lock."""
    return [
        RecordRow(partition, row.id, row.version, tuple(row.columns.values()), row.body.decode())
        for partition, row in _rows_after(tables, kind, after, limit)
    ]


@contextmanager
def lock_exclusively(tables: Tables, uniques: dict[UniqueKey, str]) -> Iterator[ExclusiveAccess]:
    """See `MaintenanceAccess.lock_exclusively`; under the storage's lock."""
    access = MemoryExclusiveAccess(tables, uniques)
    try:
        yield access
    except BaseException:
        access.roll_back()
        raise
    access.raise_failure()


class MemoryExclusiveAccess:
    """The tables of a storage whose lock is held."""

    def __init__(self, tables: Tables, uniques: dict[UniqueKey, str]) -> None:
        self._tables = tables
        self._uniques = uniques
        self._loaded: list[tuple[tuple[str, str], Stored]] = []
        self._failure: BaseException | None = None

    def read_rows(
        self, kind: type[Record], *, after: PrimaryKey | None = None, limit: int = BATCH
    ) -> Sequence[RecordRow]:
        return read_rows(self._tables, kind, after, limit)

    def load(self, kind: type[Record], rows: Sequence[RecordRow]) -> None:
        try:
            for row in rows:
                self._load_row(kind, row)
        except BaseException as error:
            self._failure = error
            raise

    def _load_row(self, kind: type[Record], row: RecordRow) -> None:
        collection = kind.collection
        made = to_stored_row(row.partition, row.read(kind))
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

    def raise_failure(self) -> None:
        """Raise the error that ended it, if it was swallowed."""
        if self._failure is not None:
            self.roll_back()
            raise self._failure

    def roll_back(self) -> None:
        """Remove the loaded rows."""
        for place, stored in self._loaded:
            del self._tables[place][stored.id]
            for unique in stored.uniques:
                del self._uniques[unique]
        self._loaded.clear()


def _rows_after(
    tables: Tables, kind: type[Record], after: PrimaryKey | None, limit: int
) -> list[tuple[str, Stored]]:
    """Rows of a collection after a place, each with its partition."""
    found = [
        (partition, row)
        for (partition, name), table in tables.items()
        if name == kind.collection.name
        for row in table.values()
        if after is None or (partition, row.id) > after
    ]
    return sorted(found, key=lambda item: (item[0], item[1].id))[:limit]
