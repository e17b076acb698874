"""The tables of the collections in PostgreSQL, and their migration while others work.

Migrations only add: tables, columns filled from the stored bodies, indexes. Only a collection that
another one takes over is gone at once, with its rows moved: a view has its name. One process at a
time does it, under the lock of a row that another connection holds meanwhile. Each step is a
separate transaction, or none at all, and checks itself whether it was done: a process killed in the
middle is followed by another that continues. Requests wait for none of them longer than
`DDL_LOCK_MS`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import psycopg

from payments_core.storage.postgres.backfill import backfill_columns
from payments_core.storage.postgres.distribution import distribute, has_citus, is_distributed
from payments_core.storage.postgres.hints import HINTS
from payments_core.storage.postgres.indexes import (
    CLAIM_INDEXES,
    create_indexes,
    drop_undeclared,
    indexes_of,
)
from payments_core.storage.postgres.lock_retry import DDL_LOCK_MS, retry_on_lock
from payments_core.storage.postgres.takeover import leave_tombstone, take_over_rows
from payments_core.storage.records import Collection, Record
from payments_core.storage.schema_fingerprint import compute_fingerprint

Connection = psycopg.Connection[tuple[Any, ...]]

SCHEMA_TABLE = "storage_schema"
MIGRATION_TIMEOUT_S = 3_600
"""As long as another process's migration may take: it may have an index of millions to build."""
MIGRATION_POLL_S = 0.1

_TYPES = {str: 'text COLLATE "C"', int: "bigint"}
"""Texts are ordered by code point, regardless of the database's own order."""

_NOT_BACKFILLED = "not filled yet"
"""The comment of a column from its creation until its rows have their values."""

_RINGS_BEFORE = "storage_rings"
"""The index of the claims of releases without hints."""

_COLUMNS = """
    SELECT relname, attname, col_description(attrelid, attnum)
    FROM pg_attribute
    JOIN pg_class ON pg_class.oid = attrelid
    JOIN pg_namespace ON pg_namespace.oid = relnamespace
    WHERE nspname = current_schema() AND relkind IN ('r', 'p') AND attnum > 0 AND NOT attisdropped
"""


def is_current(connection: Connection, record_types: Sequence[type[Record]]) -> bool:
    """Whether the last migration was for exactly these kinds."""
    row = connection.execute("SELECT to_regclass(%s)", (SCHEMA_TABLE,)).fetchone()
    if row is None or row[0] is None:
        return False
    found = connection.execute(f"SELECT fingerprint FROM {SCHEMA_TABLE}".encode()).fetchone()
    return found is not None and found[0] == compute_fingerprint(record_types, CLAIM_INDEXES)


def find_missing(connection: Connection, record_types: Sequence[type[Record]]) -> list[str]:
    """The tables and columns that these kinds need and the schema lacks, or has not filled yet."""
    if is_current(connection, record_types):
        return []
    present = _read_columns(connection)
    missing = [] if HINTS in present else [HINTS]
    for kind in record_types:
        name, columns = kind.collection.name, present.get(kind.collection.name)
        if columns is None:
            missing.append(name)
            continue
        missing += [
            f"{name}.{column}"
            for column in kind.collection.columns
            if columns.get(column, _NOT_BACKFILLED) == _NOT_BACKFILLED
        ]
    return missing


def create_lock_row(connection: Connection) -> None:
    """Create the row that migrations lock; of several processes all except one may fail."""
    connection.execute(
        f"CREATE TABLE IF NOT EXISTS {SCHEMA_TABLE} "
        f"(id integer PRIMARY KEY, fingerprint {_TYPES[str]} NOT NULL)".encode()
    )
    connection.execute(f"INSERT INTO {SCHEMA_TABLE} VALUES (1, '') ON CONFLICT DO NOTHING".encode())


def try_lock(connection: Connection) -> bool:
    """Lock out other migrations until the transaction ends; False if another one runs.

    No statement waits for the other to end: the building of an index waits for every
    statement that began before it.
    """
    sql = f"SELECT 1 FROM {SCHEMA_TABLE} WHERE id = 1 FOR UPDATE SKIP LOCKED"
    return connection.execute(sql.encode()).fetchone() is not None


def record_fingerprint(connection: Connection, record_types: Sequence[type[Record]]) -> None:
    """Record the source of the schema, in the transaction that holds the lock."""
    connection.execute(
        f"UPDATE {SCHEMA_TABLE} SET fingerprint = %s WHERE id = 1".encode(),
        (compute_fingerprint(record_types, CLAIM_INDEXES),),
    )


def migrate_schema(connection: Connection, record_types: Sequence[type[Record]]) -> None:
    """Add what is missing, on its own connection without a transaction, while locked."""
    _limit_lock_waits(connection)
    present = _read_columns(connection)
    is_first = not any(kind.collection.name in present for kind in record_types)
    if HINTS not in present:
        _create_hints(connection, distributed=is_first and has_citus(connection))
    distributed = is_distributed(connection)
    for kind in record_types:
        if kind.collection.name in present:
            _add_columns(connection, kind.collection, present[kind.collection.name])
        else:
            _create_table(connection, kind.collection, distributed=distributed)
            present[kind.collection.name] = dict.fromkeys(kind.collection.columns)
    found = _read_columns(connection)
    for kind in record_types:
        columns = found[kind.collection.name]
        unfilled = [name for name in kind.collection.columns if columns[name] == _NOT_BACKFILLED]
        if unfilled:
            backfill_columns(connection, kind)
        for name in unfilled:
            _comment_column(connection, kind.collection, name, "NULL")
        for earlier in kind.collection.takes_over:
            change = take_over_rows if earlier in found else leave_tombstone
            retry_on_lock(partial(change, connection, kind, earlier))
    create_indexes(connection, record_types)


def backfill_all(connection: Connection, record_types: Sequence[type[Record]]) -> int:
    """Correct all columns that differ from the bodies; return how many rows did.

    The previous release does not write newer columns, and leaves those of its rows empty,
    or unchanged. So this is run again when that release has ended. The indexes that only
    that release used are then dropped.
    """
    _limit_lock_waits(connection)
    corrected = sum(
        backfill_columns(connection, kind) for kind in record_types if kind.collection.columns
    )
    drop_undeclared(connection, record_types)
    retry_on_lock(lambda: connection.execute(f"DROP TABLE IF EXISTS {_RINGS_BEFORE}".encode()))
    return corrected


def _limit_lock_waits(connection: Connection) -> None:
    connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
    connection.execute("SET statement_timeout = 0")
    connection.execute(f"SET lock_timeout = {DDL_LOCK_MS}".encode())


def _read_columns(connection: Connection) -> dict[str, dict[str, str | None]]:
    """The columns of each table, with their comments."""
    found: dict[str, dict[str, str | None]] = defaultdict(dict)
    for table, column, comment in connection.execute(_COLUMNS.encode()).fetchall():
        found[table][column] = comment
    return dict(found)


def _create_hints(connection: Connection, *, distributed: bool) -> None:
    text = f"{_TYPES[str]} NOT NULL"
    with connection.transaction():
        connection.execute(
            f"CREATE TABLE {HINTS} (partition {text}, queue {text}, "
            f"due_at bigint NOT NULL, lane {text}, PRIMARY KEY (partition, queue))".encode()
        )
        due = f"{HINTS}__due ON {HINTS} (queue, due_at, partition)"
        connection.execute(f"CREATE INDEX {due}".encode())
        if distributed:
            distribute(connection, HINTS)


def _create_table(connection: Connection, collection: Collection, *, distributed: bool) -> None:
    text = _TYPES[str]
    own = "".join(f'"{name}" {_TYPES[type_]}, ' for name, type_ in collection.columns.items())
    with connection.transaction():
        connection.execute(
            f'CREATE TABLE "{collection.name}" (partition {text} NOT NULL, id {text} NOT NULL, '
            f"version bigint NOT NULL, {own}body {text} NOT NULL, "
            "PRIMARY KEY (partition, id))".encode()
        )
        for index in indexes_of(collection):
            connection.execute(index.create_statement(index.name, concurrently=False))
            connection.execute(index.comment_statement(index.name))
        if distributed:
            distribute(connection, collection.name)


def _add_columns(
    connection: Connection, collection: Collection, present: Mapping[str, str | None]
) -> None:
    missing = {name: kind for name, kind in collection.columns.items() if name not in present}

    def add() -> None:
        with connection.transaction():
            adds = ", ".join(f'ADD "{name}" {_TYPES[kind]}' for name, kind in missing.items())
            connection.execute(f'ALTER TABLE "{collection.name}" {adds}'.encode())
            for name in missing:
                _comment_column(connection, collection, name, f"'{_NOT_BACKFILLED}'")

    if missing:
        retry_on_lock(add)


def _comment_column(
    connection: Connection, collection: Collection, column: str, comment: str
) -> None:
    sql = f'COMMENT ON COLUMN "{collection.name}"."{column}" IS {comment}'
    retry_on_lock(lambda: connection.execute(sql.encode()))
