"""Rows in dictionaries, and the snapshot and transaction of the memory adapter."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Literal

import attrs

from payments_core.storage import documents, one_by_one
from payments_core.storage.damaged_records import AlarmLimit, decode_row
from payments_core.storage.port import (
    SCAN_LIMIT,
    Conflict,
    Page,
    Position,
    UniqueConflict,
    VersionConflict,
    Where,
)
from payments_core.storage.query_semantics import select_page
from payments_core.storage.records import R, Record, Value

UniqueKey = tuple[str, str, str, tuple[Value, ...]]  # partition, collection, unique, values
ReadMethod = Literal["get", "find"]


@attrs.frozen
class StoredRow:
    """A record at rest."""

    id: str
    version: int
    body: bytes
    columns: Mapping[str, Value]
    uniques: tuple[UniqueKey, ...]

    def read(self, kind: type[R]) -> R:
        """The record, decoded."""
        return documents.decode(kind, self.body)


Table = dict[str, StoredRow]
Tables = dict[tuple[str, str], Table]  # by partition and collection
StaleTableReader = Callable[[str, str, ReadMethod], Table]


def to_stored_row(partition: str, record: Record) -> StoredRow:
    """The row of a stamped record. Raises ValueError for one that cannot be stored."""
    collection = type(record).collection
    columns = collection.row(record)
    uniques: list[UniqueKey] = []
    for unique in collection.uniques:
        values = tuple(columns[column] for column in unique.columns)
        if None not in values:
            uniques.append((partition, collection.name, unique.name, values))
    body = documents.encode(record)
    return StoredRow(record.id, record.version, body, columns, tuple(uniques))


class RerunRequired(Exception):
    """Something that the work may rely on has changed; it runs again."""


def _default_scan_limit() -> int:
    return SCAN_LIMIT


class MemorySnapshot:
    """Reads tables that nobody else changes meanwhile."""

    def __init__(
        self, tables: Tables, partition: str, limits: Callable[[], int] = _default_scan_limit
    ) -> None:
        self._tables = tables
        self._partition = partition
        self._limits = limits

    def get(self, kind: type[R], id: str, *, for_update: bool = False) -> R | None:
        row = self._row(kind.collection.name, id, for_update)
        return row.read(kind) if row else None

    def find(
        self,
        kind: type[R],
        index: str,
        key: Sequence[Value] = (),
        *,
        where: Sequence[Where] = (),
        after: Position | None = None,
        limit: int = 50,
        skip_damaged: bool = False,
    ) -> Page[R]:
        rows = self._rows(kind.collection.name)
        columns = {id: row.columns for id, row in rows.items()}
        scan_limit = self._limits() if where else SCAN_LIMIT
        chosen, position = select_page(
            kind.collection, index, key, columns, where, after, limit, scan_limit
        )
        decode = partial(
            decode_row, kind, self._partition, skip_damaged=skip_damaged, alarms=AlarmLimit()
        )
        found = (decode(id, rows[id].body) for id in chosen)
        return Page(tuple(record for record in found if record is not None), position)

    def count(
        self,
        kind: type[R],
        index: str,
        key: Sequence[Value] = (),
        *,
        where: Sequence[Where] = (),
        after: Position | None = None,
        limit: int,
    ) -> int:
        columns = {id: row.columns for id, row in self._rows(kind.collection.name).items()}
        found, _ = select_page(
            kind.collection, index, key, columns, where, after, limit, SCAN_LIMIT
        )
        return len(found)

    get_many = one_by_one.get_many
    read_ahead = one_by_one.read_ahead

    # A read must not add a table: another thread may be iterating over them.

    def _row(self, collection: str, id: str, for_update: bool) -> StoredRow | None:
        return self._tables.get((self._partition, collection), {}).get(id)

    def _rows(self, collection: str) -> Table:
        return self._tables.get((self._partition, collection), {})


class MemoryTransaction(MemorySnapshot):
    """Reads through its own writes; everything that it may rely on is verified at the end.

    With `past`, unlocked reads come from there.
    """

    def __init__(
        self,
        tables: Tables,
        uniques: Mapping[UniqueKey, str],
        partition: str,
        *,
        past: StaleTableReader | None = None,
        limits: Callable[[], int] = _default_scan_limit,
    ) -> None:
        super().__init__(tables, partition, limits)
        self._uniques = uniques
        self._past = past
        self._relied: dict[tuple[str, str], int] = {}
        self._taken: dict[UniqueKey, str] = {}
        self._conflict: Conflict | None = None
        self.writes: dict[tuple[str, str], StoredRow | None] = {}

    def hold(self, record: Record) -> None:
        self._require_current(record)

    def insert(self, record: Record) -> None:
        key, version = self._locate(record)
        if version:
            raise self._fail(UniqueConflict(key[0], "id"))
        if key not in self.writes:  # as read just now, not as changed meanwhile
            self._relied.setdefault(key, 0)
        self._write(key, record, 1)

    def replace(self, record: Record) -> None:
        self._write(self._require_current(record), record, record.version + 1)

    def delete(self, record: Record) -> None:
        key = self._require_current(record)
        self._release_keys(key)
        self.writes[key] = None

    write = one_by_one.write

    def raise_failure(self) -> None:
        """Raise the conflict that ended the work, if the work swallowed it."""
        if self._conflict is not None:
            raise self._conflict

    def verify(self) -> None:
        """Raise Rerun unless everything that the work relied on is unchanged. Under the lock."""
        for key, version in self._relied.items():
            row = super()._row(*key, False)
            if (row.version if row else 0) != version:
                raise RerunRequired
        for unique, id in self._taken.items():
            if self._stored_owner(unique) not in (None, id):
                raise RerunRequired

    def _row(self, collection: str, id: str, for_update: bool) -> StoredRow | None:
        self.raise_failure()
        key = (collection, id)
        if key in self.writes:
            return self.writes[key]
        if for_update or self._past is None:
            row = super()._row(collection, id, for_update)
        else:
            row = self._past(self._partition, collection, "get").get(id)
        if for_update and row is not None:  # an absent record cannot be locked
            self._relied.setdefault(key, row.version)
        return row

    def _rows(self, collection: str) -> Table:
        self.raise_failure()
        if self._past is None:
            rows = dict(super()._rows(collection))
        else:
            rows = self._past(self._partition, collection, "find")
        for (name, id), row in self.writes.items():
            if name == collection:
                rows.pop(id, None)
                if row is not None:
                    rows[id] = row
        return rows

    def _require_current(self, record: Record) -> tuple[str, str]:
        """The key of a record that must exist at its version."""
        key, version = self._locate(record)
        if version == 0 or version != record.version:
            raise self._fail(VersionConflict(f"{key[0]}: {record.id} has changed"))
        if key not in self.writes:
            self._relied.setdefault(key, version)
        return key

    def _write(self, key: tuple[str, str], record: Record, version: int) -> None:
        row = to_stored_row(self._partition, documents.stamp(record, version))
        self._release_keys(key)
        for unique in row.uniques:
            if self._taken.get(unique, self._stored_owner(unique)) not in (None, record.id):
                raise self._fail(UniqueConflict(key[0], unique[2]))
            self._taken[unique] = record.id
        self.writes[key] = row

    def _fail(self, conflict: Conflict) -> Conflict:
        self._conflict = conflict
        return conflict

    def _locate(self, record: Record) -> tuple[tuple[str, str], int]:
        """A record's key, and the version that this transaction sees; 0 if there is none."""
        self.raise_failure()
        key = (type(record).collection.name, record.id)
        row = self.writes[key] if key in self.writes else super()._row(*key, False)
        return key, row.version if row else 0

    def _stored_owner(self, unique: UniqueKey) -> str | None:
        """The row that holds a key in the store, unless this transaction rewrote or deleted it."""
        owner = self._uniques.get(unique)
        if owner is not None and (unique[1], owner) in self.writes:
            return None
        return owner

    def _release_keys(self, key: tuple[str, str]) -> None:
        row = self.writes.get(key)
        for unique in row.uniques if row else ():
            del self._taken[unique]
