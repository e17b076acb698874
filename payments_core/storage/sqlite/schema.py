"""The tables and indexes of the collections in an SQLite file, and their migration.

Migrations only add: tables, columns filled from the stored bodies, indexes. So the previous release
can continue writing while the next one starts. Undeclared ones are dropped at the end. Only a
collection that another one takes over is gone at once, with its rows moved: a view has its name.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import TYPE_CHECKING

from payments_core.clock import Instant
from payments_core.storage.damaged_records import try_decode
from payments_core.storage.records import Collection, Record
from payments_core.storage.schema_fingerprint import compute_fingerprint
from payments_core.storage.table_indexes import table_indexes_of
from payments_core.storage.takeover import convert_row, make_tombstone

if TYPE_CHECKING:
    import sqlite_utils

SCHEMA_TABLE = "storage_schema"
BACKFILL_BATCH = 1_000

FREE = "lease_until = 0"
LEASED = "lease_until > 0"

BUCKET_BITS = 20
BUCKET = f"due_at >> {BUCKET_BITS}"
"""When a job is due, in steps of 17 minutes: a claim finds the due lanes by these, and so scans
neither the rows of a long queue one by one, nor the many lanes whose jobs come later."""

_CLAIM_INDEXES = {
    "jobs__free_lanes": f"(queue, partition, {BUCKET}, lane) WHERE {FREE}",
    "jobs__free_due": f"(queue, due_at, partition) WHERE {FREE}",
    "jobs__lane_leases": f"(queue, partition, lane, lease_until, due_at) WHERE {LEASED}",
}
"""In addition to the collection's `by_queue_lane`, which has the jobs of a lane in order. The cost
of a lease is its change here: it moves the job out of two and into the third, which is small, so
that it can be scanned for leases that have ended."""


def bucket_of(due_at: Instant) -> int:
    """The bucket of an instant, as SQLite computes it."""
    return due_at >> BUCKET_BITS


def indexes_of(collection: Collection) -> dict[str, tuple[bool, tuple[str, ...]]]:
    """Each index's name in the file, whether it is unique, and its columns."""
    return {
        f"{collection.name}__{index.name}": (index.unique, index.columns)
        for index in table_indexes_of(collection)
    }


def is_current(connection: sqlite3.Connection, record_types: Sequence[type[Record]]) -> bool:
    """Whether the file's last migration was for exactly these kinds."""
    known = "SELECT count(*) FROM sqlite_master WHERE name = ?"
    if connection.execute(known, (SCHEMA_TABLE,)).fetchone()[0] == 0:
        return False
    row = connection.execute(f"SELECT fingerprint FROM {SCHEMA_TABLE}").fetchone()
    return row is not None and row[0] == compute_fingerprint(record_types, _CLAIM_INDEXES)


def find_missing(connection: sqlite3.Connection, record_types: Sequence[type[Record]]) -> list[str]:
    """The tables and columns that these kinds need and the file lacks."""
    if is_current(connection, record_types):
        return []
    missing: list[str] = []
    for kind in record_types:
        name = kind.collection.name
        asked = connection.execute("SELECT name FROM pragma_table_info(?)", (name,))
        columns = {column for (column,) in asked}
        if columns:
            missing += [f"{name}.{one}" for one in kind.collection.columns if one not in columns]
        else:
            missing.append(name)
    return missing


def migrate_schema(connection: sqlite3.Connection, record_types: Sequence[type[Record]]) -> None:
    """Add what is missing, inside the transaction that the caller began with BEGIN IMMEDIATE."""
    import sqlite_utils  # a third of a second, spent only when there is something to do

    database = sqlite_utils.Database(connection, execute_plugins=False)
    if SCHEMA_TABLE not in database.table_names():
        database.table(SCHEMA_TABLE).create({"id": int, "fingerprint": str}, pk="id")
    for kind in record_types:
        _migrate_table(database, kind)
        for earlier in kind.collection.takes_over:
            if earlier in database.table_names():
                _take_over(connection, kind, earlier)
            connection.execute(f"CREATE VIEW IF NOT EXISTS {make_tombstone(kind, earlier)}")
    for name, columns in _CLAIM_INDEXES.items():
        connection.execute(f"CREATE INDEX IF NOT EXISTS {name} ON jobs {columns}")
    connection.execute(
        f"INSERT OR REPLACE INTO {SCHEMA_TABLE} (id, fingerprint) VALUES (1, ?)",
        (compute_fingerprint(record_types, _CLAIM_INDEXES),),
    )


def _migrate_table(database: sqlite_utils.Database, kind: type[Record]) -> None:
    collection = kind.collection
    table = database.table(collection.name)
    if not table.exists():
        # A table with a rowid: bodies of a kilobyte make one WITHOUT ROWID twice as large on
        # disk and three times as slow to read (measured).
        own: dict[str, type[str | int]] = {"partition": str, "id": str, "version": int}
        table.create(
            {**own, **collection.columns, "body": str},
            pk=("partition", "id"),
            not_null={*own, "body"},
        )
    missing = [column for column in collection.columns if column not in table.columns_dict]
    for column in missing:
        table.add_column(column, collection.columns[column])
    if missing:
        _backfill_table(database.conn, kind)
    present = {index.name: (bool(index.unique), tuple(index.columns)) for index in table.indexes}
    for name, (unique, columns) in indexes_of(collection).items():
        if present.get(name) == (unique, columns):
            continue
        if name in present:
            database.execute(f'DROP INDEX "{name}"')
        table.create_index(list(columns), index_name=name, unique=unique)


def _take_over(connection: sqlite3.Connection, kind: type[Record], earlier: str) -> None:
    """Move all rows of an earlier collection into that of `kind`, and drop its table."""
    collection = kind.collection
    convert = collection.takes_over[earlier]
    rows = connection.execute(f'SELECT partition, id, version, body FROM "{earlier}"')
    moved = (
        (partition, id, version, *values, converted)
        for partition, id, version, body in rows
        for values, converted in (convert_row(kind, convert, body),)
    )
    names = "".join(f', "{column}"' for column in collection.columns)
    places = ", ".join("?" * (4 + len(collection.columns)))
    connection.executemany(
        f'INSERT INTO "{collection.name}" (partition, id, version{names}, body) VALUES ({places})',
        moved,
    )
    connection.execute(f'DROP TABLE "{earlier}"')


def drop_undeclared(connection: sqlite3.Connection, record_types: Sequence[type[Record]]) -> None:
    """Drop the indexes and unique keys that no collection declares any more.

    Not while another release may run, older or newer than this one: it may read by them, and
    rely on the keys.
    """
    for kind in record_types:
        collection = kind.collection
        declared = {*indexes_of(collection), *_CLAIM_INDEXES}
        asked = "SELECT name FROM sqlite_master WHERE type = 'index' AND tbl_name = ?"
        for (name,) in connection.execute(asked, (collection.name,)).fetchall():
            if name.startswith(f"{collection.name}__") and name not in declared:
                connection.execute(f'DROP INDEX "{name}"')


def _backfill_table(connection: sqlite3.Connection, kind: type[Record]) -> None:
    """Set the columns of every row from its body."""
    last: int | None = 0
    while last is not None:
        last, _ = backfill_batch(connection, kind, last)


def backfill_batch(
    connection: sqlite3.Connection, kind: type[Record], after: int
) -> tuple[int | None, int]:
    """Correct the columns that differ from the bodies, in a batch of the rows after one.

    Returns where to continue, None at the end, and how many rows were wrong. The previous release
    does not write newer columns. Unreadable rows are left as they are.
    """
    collection = kind.collection
    names = "".join(f', "{column}"' for column in collection.columns)
    behind = f'FROM "{collection.name}" WHERE rowid > ? ORDER BY rowid LIMIT {BACKFILL_BATCH}'
    rows = connection.execute(f"SELECT rowid, body{names} {behind}", (after,)).fetchall()
    wrong = []
    for row, body, *present in rows:
        record = try_decode(kind, body)
        if record is not None and collection.values(record) != tuple(present):
            wrong.append((*collection.values(record), row))
    sets = ", ".join(f'"{column}" = ?' for column in collection.columns)
    if wrong:
        connection.executemany(f'UPDATE "{collection.name}" SET {sets} WHERE rowid = ?', wrong)
    return (rows[-1][0] if rows else None), len(wrong)
