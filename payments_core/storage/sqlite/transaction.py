"""Records in SQLite's tables: the statements, and the transaction that runs them.

Every table has the columns partition, id, version, those that its collection declares, and body.
"""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Collection as Ids
from functools import partial
from typing import Any, TypeVar

from payments_core.storage import documents
from payments_core.storage.damaged_records import AlarmLimit, decode_located, decode_row
from payments_core.storage.port import (
    SCAN_LIMIT,
    Conflict,
    LocatedRecord,
    OnDamaged,
    Page,
    Position,
    StorageError,
    StorageUnavailable,
    UniqueConflict,
    VersionConflict,
    Where,
)
from payments_core.storage.query_semantics import valid_lookup_keys, validate_query
from payments_core.storage.reads import Get, Read
from payments_core.storage.records import (
    Collection,
    R,
    Record,
    Value,
    fits_column,
    group_by_collection,
)
from payments_core.storage.sqlite.bulk import bulk_statements_of, deletion_rows
from payments_core.storage.sqlite.queries import (
    MAX_ROWS,
    count_statement,
    insert_statement,
    locate_statement,
    page_statement,
    select_each_statement,
    statements_of,
)
from payments_core.storage.sqlite.replacements import replace_rows

T = TypeVar("T")
RecordKey = tuple[str, str]
"""Collection and id."""

MAX_READ_AHEAD = 16
"""The maximum number of records of one SELECT; each list of tables has a prepared statement."""

_TRANSIENT = {
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_NOMEM,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_INTERRUPT,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_PROTOCOL,
}
"""Errors that the machine or another process may fix; others are faults of the file or ours."""


def storage_error(error: sqlite3.Error) -> StorageError:
    """Our error for a driver's error. Raise it `from` the driver's."""
    code = getattr(error, "sqlite_errorcode", 0)
    # The only triggers are those of a retired file, whose records are in use elsewhere.
    if code & 0xFF in _TRANSIENT or code == sqlite3.SQLITE_CONSTRAINT_TRIGGER:
        return StorageUnavailable(f"SQLite: {error}")
    if "no such table" in str(error) or "no such column" in str(error):
        return StorageError(f"SQLite: {error}; has `migrate` been run?")
    return StorageError(f"SQLite: {error}")


def locate(
    connection: sqlite3.Connection,
    kind: type[R],
    lookup: str,
    keys: Sequence[Sequence[Value]],
    where: Sequence[Where],
    after: tuple[str, str] | None,
    limit: int,
    on_damaged: OnDamaged | None,
) -> list[LocatedRecord[R]]:
    """See `Storage.locate`; on a connection whose transaction the caller began."""
    collection = kind.collection
    chosen = collection.lookup(lookup)
    sql = locate_statement(
        collection.name,
        chosen,
        tuple((item.column, item.operator) for item in where),
        after is not None,
    )
    values = (
        json.dumps(valid_lookup_keys(collection, chosen, keys, limit)),
        *(item.value for item in where),
        *(after or ()),
        limit,
    )
    rows = connection.execute(sql, values).fetchall()
    return [
        LocatedRecord(partition, record)
        for partition, id, body in rows
        if (record := decode_located(kind, partition, id, body, on_damaged)) is not None
    ]


class SqliteSnapshot:
    """The operations of a snapshot, on a connection whose transaction the caller began."""

    def __init__(self, connection: sqlite3.Connection, partition: str) -> None:
        self._connection = connection
        self._partition = partition
        self._failure: StorageError | None = None
        self._ahead: dict[RecordKey, bytes | None] = {}
        """Bodies that were read ahead; None means no row."""

    def get(self, kind: type[R], id: str, *, for_update: bool = False) -> R | None:
        # `for_update` needs nothing: a writer is alone from its BEGIN IMMEDIATE on.
        place = (kind.collection.name, id)
        if place in self._ahead:
            self.raise_failure()
            body = self._ahead[place]
            return None if body is None else documents.decode(kind, body)
        row = self._fetch_one(statements_of(kind.collection).select, (self._partition, id))
        return None if row is None else documents.decode(kind, row[0])

    def read_ahead(self, *reads: Read) -> None:
        # Pages are read one by one, since there is no network.
        places: dict[RecordKey, Collection] = {}
        for read in reads:
            if isinstance(read, Get) and fits_column(read.id):
                place = (read.kind.collection.name, read.id)
                if place not in self._ahead:
                    places[place] = read.kind.collection
        if len(places) > MAX_READ_AHEAD:
            self._ahead.update(dict.fromkeys(places))
            for collection in {it.name: it for it in places.values()}.values():
                ids = [id for table, id in places if table == collection.name]
                found = self._select_many(collection, ids)
                self._ahead.update({(collection.name, id): body for id, body in found})
        elif len(places) > 1:
            sql = select_each_statement(tuple([table for table, _ in places]))
            values = (self._partition, *[id for _, id in places])
            rows = self._run_guarded(lambda: self._connection.execute(sql, values).fetchall())
            bodies = dict(rows)
            for number, place in enumerate(places):
                self._ahead[place] = bodies.get(number)

    def raise_failure(self) -> None:
        """Raise the error of an earlier statement, if the work swallowed it."""
        if self._failure is not None:
            raise self._failure

    def get_many(
        self, kind: type[R], ids: Ids[str], *, for_update: bool = False
    ) -> Mapping[str, R]:
        found = self._select_many(kind.collection, [id for id in ids if fits_column(id)])
        return {id: documents.decode(kind, body) for id, body in found}

    def _select_many(
        self, collection: Collection, ids: Sequence[str]
    ) -> Sequence[tuple[str, bytes]]:
        sql = bulk_statements_of(collection).select
        at = {"partition": self._partition, "rows": json.dumps(ids)}
        return self._run_guarded(lambda: self._connection.execute(sql, at).fetchall())

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
        collection = kind.collection
        chosen_index = validate_query(collection, index, key, after, limit)
        scan = SCAN_LIMIT if where else min(limit, SCAN_LIMIT)
        sql = page_statement(
            collection.name,
            chosen_index,
            tuple((item.column, item.operator) for item in where),
            after is not None,
        )
        values = (
            *(item.value for item in where),
            self._partition,
            *key,
            *(after or ()),
            scan + 1,
        )
        decode = partial(
            decode_row, kind, self._partition, skip_damaged=skip_damaged, alarms=AlarmLimit()
        )
        return self._run_guarded(lambda: self._fetch_page(decode, sql, values, limit, scan))

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
        chosen_index = validate_query(kind.collection, index, key, after, limit)
        comparisons = tuple((item.column, item.operator) for item in where)
        sql = count_statement(kind.collection.name, chosen_index, comparisons, after is not None)
        values = (
            self._partition,
            *key,
            *(after or ()),
            SCAN_LIMIT if where else min(limit, SCAN_LIMIT),
            *(item.value for item in where),
            limit,
        )
        row = self._fetch_one(sql, values)
        assert row is not None
        return int(row[0])

    def _fetch_page(
        self,
        decode: Callable[[str, bytes], R | None],
        sql: str,
        values: Sequence[Value],
        limit: int,
        scan: int,
    ) -> Page[R]:
        chosen: list[R] = []
        fitting = 0
        position: Position | None = None
        cursor = self._connection.execute(sql, values)
        try:
            for scanned, (body, *here) in enumerate(cursor):
                if fitting == limit or scanned == scan:
                    return Page(tuple(chosen), position)
                position = tuple(here)
                if body is not None:
                    fitting += 1
                    record = decode(here[-1], body)
                    chosen += [] if record is None else [record]
        finally:
            cursor.close()  # an unfinished one would keep its snapshot open
        return Page(tuple(chosen), None)

    def _fetch_one(self, sql: str, values: Sequence[Value]) -> tuple[Any, ...] | None:
        # Like `_run_guarded`, without a function to call: most statements are these.
        if self._failure is not None:
            raise self._failure
        try:
            row: tuple[Any, ...] | None = self._connection.execute(sql, values).fetchone()
        except sqlite3.Error as error:
            self._failure = storage_error(error)
            raise self._failure from error
        return row

    def _run_guarded(self, run: Callable[[], T]) -> T:
        """Run statements, unless one failed before; translate and keep their errors.

        SQLite may have undone the whole transaction on an error, and later statements would
        then commit separately.
        """
        self.raise_failure()
        try:
            return run()
        except sqlite3.Error as error:
            self._failure = storage_error(error)
            raise self._failure from error


class SqliteTransaction(SqliteSnapshot):
    """The operations of the work of a `transact`, alone with the file."""

    def __init__(self, connection: sqlite3.Connection, partition: str) -> None:
        super().__init__(connection, partition)
        self._read: defaultdict[str, dict[str, Record]] = defaultdict(dict)
        """The read records, by collection and id; nobody else can change them."""

    def get(self, kind: type[R], id: str, *, for_update: bool = False) -> R | None:
        record = super().get(kind, id, for_update=for_update)
        if record is not None:
            self._read[kind.collection.name][id] = record
        return record

    def get_many(
        self, kind: type[R], ids: Ids[str], *, for_update: bool = False
    ) -> Mapping[str, R]:
        found = super().get_many(kind, ids, for_update=for_update)
        self._read[kind.collection.name].update(found)
        return found

    def hold(self, record: Record) -> None:
        collection = type(record).collection
        read = self._read[collection.name].get(record.id)
        version = None if read is None else read.version
        if version is None:
            at = (self._partition, record.id)
            row = self._fetch_one(statements_of(collection).version, at)
            version = row[0] if row else None
        self.raise_failure()
        if version != record.version:
            raise self._fail(VersionConflict(f"{collection.name}: {record.id} has changed"))

    def insert(self, record: Record) -> None:
        self._insert(type(record).collection, [record])

    def replace(self, record: Record) -> None:
        self._replace(type(record).collection, [record])

    def delete(self, record: Record) -> None:
        collection = type(record).collection
        self._forget(collection, [record])
        changed = self._write(
            collection,
            statements_of(collection).delete,
            (self._partition, record.id, record.version),
        )
        if not changed:
            raise self._fail(VersionConflict(f"{collection.name}: {record.id} has changed"))

    def write(
        self,
        inserts: Sequence[Record],
        replaces: Sequence[Record] = (),
        deletes: Sequence[Record] = (),
    ) -> None:
        for collection, records in group_by_collection(replaces):
            together = [records]
            if not collection.is_replaced_in_any_order:
                together = [[record] for record in records]
            for batch in together:
                self._replace(collection, batch)
        for collection, records in group_by_collection(deletes):
            sql = bulk_statements_of(collection).delete
            self._write_many(collection, sql, deletion_rows(records), records)
        for collection, records in group_by_collection(inserts):
            for first in range(0, len(records), MAX_ROWS):
                self._insert(collection, records[first : first + MAX_ROWS])

    def _replace(self, collection: Collection, records: Sequence[Record]) -> None:
        read = self._read[collection.name]
        replaced = replace_rows(
            partial(self._write, collection), self._partition, collection, records, read
        )
        self._forget(collection, records)
        if not replaced:
            which = records[0].id if len(records) == 1 else "one of many"
            raise self._fail(VersionConflict(f"{collection.name}: {which} has changed"))

    def _insert(self, collection: Collection, records: Sequence[Record]) -> None:
        self._forget(collection, records)
        rows: list[Value] = []
        for record in records:
            stored = documents.stamp(record, 1)
            values = collection.values(stored)
            rows += (self._partition, record.id, 1, *values, documents.encode(stored).decode())
        sql = insert_statement(collection.name, tuple(collection.columns), len(records))
        self._write(collection, sql, rows)

    def _forget(self, collection: Collection, records: Sequence[Record]) -> None:
        """The earlier reads of records that are written now."""
        read = self._read[collection.name]
        for record in records:
            self._ahead.pop((collection.name, record.id), None)
            read.pop(record.id, None)

    def _write(
        self, collection: Collection, sql: str, values: Sequence[Value] | Mapping[str, Value]
    ) -> int:
        def run() -> int:
            try:
                return self._connection.execute(sql, values).rowcount
            except sqlite3.IntegrityError as error:
                raise self._fail(unique_conflict(collection, error)) from error

        return self._run_guarded(run)

    def _write_many(
        self, collection: Collection, sql: str, rows: str, records: Sequence[Record]
    ) -> None:
        self._forget(collection, records)
        changed = self._write(collection, sql, {"partition": self._partition, "rows": rows})
        if changed != len(records):
            raise self._fail(VersionConflict(f"{collection.name}: one of many has changed"))

    def _fail(self, conflict: Conflict) -> Conflict:
        self._failure = conflict
        return conflict


def unique_conflict(collection: Collection, error: sqlite3.IntegrityError) -> Conflict:
    """The key of a `UNIQUE constraint failed: table.a, table.b`."""
    if error.sqlite_errorcode not in (
        sqlite3.SQLITE_CONSTRAINT_UNIQUE,
        sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY,
    ):
        raise storage_error(error) from error
    _, _, failed = str(error).partition(": ")
    columns = tuple(name.rpartition(".")[2] for name in failed.split(", "))
    for unique in collection.uniques:
        if ("partition", *unique.columns) == columns:
            return UniqueConflict(collection.name, unique.name)
    return UniqueConflict(collection.name, "id")
