"""The tables and indexes of the collections in PostgreSQL, and how they come up to date.

Migrations only add: tables, columns filled from the stored bodies, indexes. They run in one
transaction that begins by locking a row, so that of several processes one does the work.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import psycopg

from payments_core.storage import documents
from payments_core.storage.fingerprints import fingerprint
from payments_core.storage.postgres_claims import BUCKET, READY, RINGS
from payments_core.storage.postgres_rows import index_name
from payments_core.storage.records import Collection, Record

Connection = psycopg.Connection[tuple[Any, ...]]

SCHEMA_TABLE = "storage_schema"
MIGRATION_LOCK_MS = 60_000
FILL_ROWS = 1_000

_TYPES = {str: 'text COLLATE "C"', int: "bigint"}
"""Texts are ordered by code point, whatever the database's own order is."""

_CLAIM_INDEXES = {
    "jobs__claim_lanes": "queue, lane, due_at, ordinal, id",
    "jobs__claim_leased": "queue, lane, lease_until",
    "jobs__claim_ready": f"queue, ({READY})",
    "jobs__claim_buckets": f"queue, ({BUCKET}), lane",
}


def is_current(connection: Connection, kinds: Sequence[type[Record]]) -> bool:
    """Whether the last migration was for just these kinds."""
    row = connection.execute("SELECT to_regclass(%s)", (SCHEMA_TABLE,)).fetchone()
    if row is None or row[0] is None:
        return False
    found = connection.execute(f"SELECT fingerprint FROM {SCHEMA_TABLE}".encode()).fetchone()
    return found is not None and found[0] == fingerprint(kinds, _CLAIM_INDEXES)


def make_lock(connection: Connection) -> None:
    """Make the row that migrations lock; of several processes all but one may fail to."""
    connection.execute(
        f"CREATE TABLE IF NOT EXISTS {SCHEMA_TABLE} "
        "(id integer PRIMARY KEY, fingerprint text NOT NULL)".encode()
    )
    connection.execute(f"INSERT INTO {SCHEMA_TABLE} VALUES (1, '') ON CONFLICT DO NOTHING".encode())


def bring_up_to_date(connection: Connection, kinds: Sequence[type[Record]]) -> None:
    """Add what is missing, alone, inside the caller's transaction."""
    connection.execute(f"SET LOCAL lock_timeout = {MIGRATION_LOCK_MS}".encode())
    connection.execute(f"SELECT 1 FROM {SCHEMA_TABLE} WHERE id = 1 FOR UPDATE".encode())
    if is_current(connection, kinds):
        return
    for kind in kinds:
        _bring_table(connection, kind)
    connection.execute(
        f"CREATE TABLE IF NOT EXISTS {RINGS} "
        '(queue text COLLATE "C" PRIMARY KEY, lane text COLLATE "C" NOT NULL)'.encode()
    )
    for name, columns in _CLAIM_INDEXES.items():
        connection.execute(f"CREATE INDEX IF NOT EXISTS {name} ON jobs ({columns})".encode())
    connection.execute(
        f"UPDATE {SCHEMA_TABLE} SET fingerprint = %s WHERE id = 1".encode(),
        (fingerprint(kinds, _CLAIM_INDEXES),),
    )


def _bring_table(connection: Connection, kind: type[Record]) -> None:
    collection = kind.collection
    text = _TYPES[str]
    connection.execute(
        f'CREATE TABLE IF NOT EXISTS "{collection.name}" ('
        f"partition {text} NOT NULL, id {text} NOT NULL, version bigint NOT NULL, "
        "body text NOT NULL, PRIMARY KEY (partition, id))".encode()
    )
    present = connection.execute(
        "SELECT column_name FROM information_schema.columns "
        "WHERE table_schema = current_schema() AND table_name = %s",
        (collection.name,),
    ).fetchall()
    missing = [column for column in collection.columns if (column,) not in present]
    for column in missing:
        type_ = _TYPES[collection.columns[column]]
        connection.execute(f'ALTER TABLE "{collection.name}" ADD "{column}" {type_}'.encode())
    if missing:
        _fill(connection, kind)
    _bring_indexes(connection, collection)


def _bring_indexes(connection: Connection, collection: Collection) -> None:
    """Make the declared indexes, and drop those that changed or are no longer declared.

    An index's comment says what it was made of, since its own text comes back in other words.
    """
    wanted = _declared(collection)
    present = connection.execute(
        "SELECT indexname, obj_description(format('%%I.%%I', schemaname, indexname)::regclass) "
        "FROM pg_indexes WHERE schemaname = current_schema() AND tablename = %s",
        (collection.name,),
    ).fetchall()
    for name, made_of in present:
        if not name.startswith(f"{collection.name}__") or name in _CLAIM_INDEXES:
            continue
        if name in wanted and made_of == wanted[name][0]:
            del wanted[name]
        else:
            connection.execute(f'DROP INDEX "{name}"'.encode())
    for name, (made_of, kind, columns) in wanted.items():
        listed = ", ".join(f'"{column}"' for column in columns)
        connection.execute(f'CREATE {kind} "{name}" ON "{collection.name}" ({listed})'.encode())
        connection.execute(f"COMMENT ON INDEX \"{name}\" IS '{made_of}'".encode())


def _declared(collection: Collection) -> dict[str, tuple[str, str, tuple[str, ...]]]:
    """By an index's name in the database: what its comment says, its kind, its columns."""
    found = {}
    for unique in collection.uniques:
        made_of = f"UNIQUE {', '.join(unique.columns)}"
        columns = ("partition", *unique.columns)
        found[index_name(collection, unique.name)] = (made_of, "UNIQUE INDEX", columns)
    for index in collection.indexes:
        made_of = ", ".join((*index.key, *index.order, "id"))
        columns = ("partition", *index.key, *index.order, "id")
        found[index_name(collection, index.name)] = (made_of, "INDEX", columns)
    for lookup in collection.lookups:
        columns = (*lookup.columns, "partition", "id")
        made_of = f"LOOKUP {', '.join(columns)}"
        found[index_name(collection, lookup.name)] = (made_of, "INDEX", columns)
    return found


def _fill(connection: Connection, kind: type[Record]) -> None:
    """Give every row the column values that its body says."""
    collection = kind.collection
    sets = ", ".join(f'"{column}" = %s' for column in collection.columns)
    update = f'UPDATE "{collection.name}" SET {sets} WHERE partition = %s AND id = %s'.encode()
    last: tuple[str, str] = ("", "")
    while rows := connection.execute(
        f'SELECT partition, id, body FROM "{collection.name}" WHERE (partition, id) > (%s, %s) '
        f"ORDER BY partition, id LIMIT {FILL_ROWS}".encode(),
        last,
    ).fetchall():
        last = rows[-1][:2]
        with connection.cursor() as cursor:
            cursor.executemany(
                update,
                [
                    (*collection.values(documents.decode(kind, body)), partition, id)
                    for partition, id, body in rows
                ],
            )
