"""Records in PostgreSQL's tables: the statements, and the transaction that runs them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, TypeVar

import psycopg
from psycopg import errors

from payments_core.storage import documents
from payments_core.storage.matching import findable_keys, require_askable
from payments_core.storage.port import (
    SCAN_LIMIT,
    Conflict,
    Located,
    LockTimeout,
    Page,
    Position,
    StorageError,
    StorageUnavailable,
    UniqueConflict,
    VersionConflict,
    Where,
)
from payments_core.storage.records import Collection, Index, Lookup, R, Record, Value

T = TypeVar("T")
Connection = psycopg.Connection[tuple[Any, ...]]
Row = tuple[Any, ...]

_ROW = "WHERE partition = %s AND id = %s"
_ARRAYS = {str: "text[]", int: "bigint[]"}


def storage_error(error: psycopg.Error) -> StorageError:
    """What a driver's error means to a caller. Raise it `from` the driver's.

    A lock that did not come within `lock_timeout` is LockTimeout and not Conflict: nothing
    says that the other transaction will commit, and a caller that ran again at once would only
    stand in the same queue.
    """
    if isinstance(error, errors.UndefinedTable | errors.UndefinedColumn):
        return StorageError(f"PostgreSQL: {error}; has `migrate` been run?")
    if isinstance(error, errors.LockNotAvailable):
        return LockTimeout(f"PostgreSQL: {error}")
    if isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        return StorageUnavailable(f"PostgreSQL: {error}")
    return StorageError(f"PostgreSQL: {error}")


def index_name(collection: Collection, name: str) -> str:
    """The name in the database of a collection's index or unique key."""
    return f"{collection.name}__{name}"


class Rows:
    """What a snapshot may do, in the transaction of a connection."""

    def __init__(self, connection: Connection, partition: str) -> None:
        self._connection = connection
        self._partition = partition
        self._failure: StorageError | None = None

    def get(self, kind: type[R], id: str, *, for_update: bool = False) -> R | None:
        if "\0" in id:  # PostgreSQL has no such text, so no such row
            return None
        sql = f'SELECT body FROM "{kind.collection.name}" {_ROW}'
        rows = self._run(sql + " FOR UPDATE" * for_update, (self._partition, id))
        if for_update and not rows:
            # A row deleted and inserted again while this one waited is seen by the next look.
            rows = self._run(sql + " FOR UPDATE", (self._partition, id))
        return documents.decode(kind, rows[0][0]) if rows else None

    def find(
        self,
        kind: type[R],
        index: str,
        key: Sequence[Value] = (),
        *,
        where: Sequence[Where] = (),
        after: Position | None = None,
        limit: int = 50,
    ) -> Page[R]:
        chosen = kind.collection.index(index)
        require_askable(chosen, key, after, limit)
        if any(isinstance(value, str) and "\0" in value for value in key):
            return Page((), None)
        nulls = tuple(value is None for value in key)
        inside = (self._partition, *(value for value in key if value is not None))

        def ask(position: Position | None, comparisons: Sequence[Where], tail: Row) -> list[Row]:
            """Rows of body and position after one; `tail` is the scan, its offset, the limit."""
            sql = page_statement(
                kind.collection.name,
                chosen,
                nulls,
                tuple((item.column, item.operator) for item in comparisons),
                position is not None,
            )
            scan, offset, most = tail
            values = (item.value for item in comparisons)
            return self._run(sql, (*inside, *(position or ()), scan, offset, *values, most))

        scan = SCAN_LIMIT if where else min(limit, SCAN_LIMIT) + 1
        most = limit if where else min(limit, SCAN_LIMIT)
        rows = ask(after, where, (scan, 0, most + 1))
        records = tuple(documents.decode(kind, row[0]) for row in rows[:most])
        if len(rows) > most:
            return Page(records, rows[most - 1][1:])
        if not where:
            return Page(records, None)
        if len(rows) == most:  # full: does anything follow?
            last: Position = rows[-1][1:]
            return Page(records, last if ask(last, (), (1, 0, 1)) else None)
        edge = ask(after, (), (2, SCAN_LIMIT - 1, 2))  # the last row scanned, and the next
        return Page(records, edge[0][1:] if len(edge) == 2 else None)

    def _run(self, sql: str, values: Sequence[Value]) -> list[Row]:
        return self._guarded(lambda: self._connection.execute(sql.encode(), values).fetchall())

    def _guarded(self, run: Callable[[], T]) -> T:
        """Run a statement, unless one failed before: the server's transaction is over then."""
        if self._failure is not None:
            raise self._failure
        try:
            return run()
        except psycopg.Error as error:
            self._failure = storage_error(error)
            raise self._failure from error


class WritingRows(Rows):
    """What the work of a `transact` may do."""

    def hold(self, record: Record) -> None:
        collection = type(record).collection
        sql = f'SELECT version FROM "{collection.name}" {_ROW} FOR SHARE'
        rows = [] if "\0" in record.id else self._run(sql, (self._partition, record.id))
        if not rows or rows[0][0] != record.version:
            raise self._changed(record)

    def insert(self, record: Record) -> None:
        collection = type(record).collection
        stored = documents.stamp(record, 1)
        values = collection.values(stored)
        body = documents.encode(stored).decode()
        names = "".join(f'"{column}", ' for column in collection.columns)
        self._write(
            collection,
            f'INSERT INTO "{collection.name}" (partition, id, version, {names}body) '
            f"VALUES (%s, %s, 1, {'%s, ' * len(values)}%s)",
            (self._partition, record.id, *values, body),
        )

    def replace(self, record: Record) -> None:
        collection = type(record).collection
        stored = documents.stamp(record, record.version + 1)
        values = collection.values(stored)
        body = documents.encode(stored).decode()
        sets = "".join(f'"{column}" = %s, ' for column in collection.columns)
        changed = self._write(
            collection,
            f'UPDATE "{collection.name}" SET version = %s, {sets}body = %s {_ROW} AND version = %s',
            (stored.version, *values, body, self._partition, record.id, record.version),
        )
        if not changed:
            raise self._changed(record)

    def delete(self, record: Record) -> None:
        collection = type(record).collection
        changed = self._write(
            collection,
            f'DELETE FROM "{collection.name}" {_ROW} AND version = %s',
            (self._partition, record.id, record.version),
        )
        if not changed:
            raise self._changed(record)

    def finish(self) -> None:
        """Raise what ended the transaction, should the work have swallowed it."""
        if self._failure is not None:
            raise self._failure

    def _write(self, collection: Collection, sql: str, values: Sequence[Value]) -> int:
        def run() -> int:
            try:
                return self._connection.execute(sql.encode(), values).rowcount
            except errors.UniqueViolation as error:
                name = error.diag.constraint_name or ""
                names = {index_name(collection, item.name): item for item in collection.uniques}
                unique = names[name].name if name in names else "id"
                raise self._end(UniqueConflict(collection.name, unique)) from error

        return self._guarded(run)

    def _changed(self, record: Record) -> Conflict:
        name = type(record).collection.name
        return self._end(VersionConflict(f"{name}: {record.id} has changed"))

    def _end(self, conflict: Conflict) -> Conflict:
        self._failure = conflict
        return conflict


@lru_cache(maxsize=2048)
def page_statement(
    table: str,
    index: Index,
    nulls: tuple[bool, ...],
    comparisons: tuple[tuple[str, str], ...],
    after: bool,
) -> str:
    """SELECT rows of the index in order; the inner LIMIT is the scan, the outer the page."""
    order = [*index.order, "id"]
    names = ", ".join(f'"{column}"' for column in order)
    inside = "".join(
        f' AND "{column}" ' + ("IS NULL" if null else "= %s")
        for column, null in zip(index.key, nulls, strict=True)
    )
    if after:
        sign = "<" if index.descending else ">"
        inside += f" AND ({names}) {sign} ({', '.join(['%s'] * len(order))})"
    direction = "DESC" if index.descending else "ASC"
    sort = ", ".join(f'"{column}" {direction}' for column in order)
    fits = " AND ".join(f'"{column}" {operator} %s' for column, operator in comparisons)
    return (
        f'SELECT body, {names} FROM (SELECT * FROM "{table}" WHERE partition = %s{inside} '
        f"ORDER BY {sort} LIMIT %s OFFSET %s) AS scanned "
        f"{'WHERE ' * bool(fits)}{fits} ORDER BY {sort} LIMIT %s"
    )


def locate(
    connection: Connection,
    kind: type[R],
    lookup: str,
    keys: Sequence[Sequence[Value]],
    where: Sequence[Where],
    after: tuple[str, str] | None,
    limit: int,
) -> list[Located[R]]:
    """What `Storage.locate` promises, in the transaction of a connection."""
    collection = kind.collection
    chosen = collection.lookup(lookup)
    found = findable_keys(collection, chosen, keys, limit)
    sql = locate_statement(
        collection.name,
        chosen,
        tuple(_ARRAYS[collection.columns[column]] for column in chosen.columns),
        tuple((item.column, item.operator) for item in where),
        after is not None,
    )
    values = (
        *([key[place] for key in found] for place in range(len(chosen.columns))),
        *(item.value for item in where),
        *(after or ()),
        limit,
    )
    rows = connection.execute(sql.encode(), values).fetchall()
    return [Located(partition, documents.decode(kind, body)) for partition, body in rows]


@lru_cache(maxsize=512)
def locate_statement(
    table: str,
    lookup: Lookup,
    arrays: tuple[str, ...],
    comparisons: tuple[tuple[str, str], ...],
    after: bool,
) -> str:
    """SELECT partition and body of the rows with a key of the arrays, one for each column.

    OFFSET 0 keeps the comparisons and the order outside: the planner guesses a range of
    (partition, id) from the partition alone, and would rather pass over all of a large one.
    """
    names = ", ".join(f"key_{place}" for place in range(len(arrays)))
    lists = ", ".join(f"%s::{array}" for array in arrays)
    key = " AND ".join(
        f'stored."{column}" = keys.key_{place}' for place, column in enumerate(lookup.columns)
    )
    fits = [f'"{column}" {operator} %s' for column, operator in comparisons]
    if after:
        fits.append("(partition, id) > (%s, %s)")
    return (
        f"SELECT partition, body FROM (SELECT stored.* FROM unnest({lists}) AS keys ({names}) "
        f'JOIN "{table}" AS stored ON {key} OFFSET 0) AS found '
        f"{'WHERE ' * bool(fits)}{' AND '.join(fits)} ORDER BY partition, id LIMIT %s"
    )
