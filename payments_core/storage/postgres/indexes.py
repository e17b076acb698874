"""The indexes of PostgreSQL's tables: which ones a collection declares, and how they are built.

On a table with rows an index is built CONCURRENTLY, so that nobody waits for it. The remains of an
interrupted build are invalid; they are dropped and built again. An index's comment has
its definition, since PostgreSQL returns its own text in another form.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import psycopg
from psycopg import errors

from payments_core.storage.port import StorageError
from payments_core.storage.postgres.errors import redact_error
from payments_core.storage.postgres.hints import LEASED, QUEUE_OF_READY, READY
from payments_core.storage.postgres.lock_retry import DDL_LOCK_MS, retry_on_lock
from payments_core.storage.postgres.snapshot import index_name
from payments_core.storage.records import Collection, Record
from payments_core.storage.table_indexes import table_indexes_of

Connection = psycopg.Connection[tuple[Any, ...]]

CLAIM_INDEXES = {
    "jobs__lane_leases": f"partition, queue, lane, lease_until WHERE {LEASED}",
    "jobs__ready_in_partition": f"{QUEUE_OF_READY}, partition, ({READY})",
    "jobs__ready": f"{QUEUE_OF_READY}, ({READY}), partition",
}
_NEXT = "__next"
"""The name of an index that replaces another, while it is built."""

_PRESENT = """
    SELECT tables.relname, indexes.relname, indisvalid, obj_description(indexrelid, 'pg_class')
    FROM pg_index
    JOIN pg_class AS indexes ON indexes.oid = indexrelid
    JOIN pg_class AS tables ON tables.oid = indrelid
    JOIN pg_namespace ON pg_namespace.oid = tables.relnamespace
    WHERE nspname = current_schema() AND NOT indisprimary
"""


@attrs.frozen
class IndexSpec:
    """A declared index; `columns` is SQL."""

    table: str
    name: str
    unique: str | None
    """The collection's name for a unique key."""
    columns: str
    condition: str = ""

    @property
    def definition(self) -> str:
        """The comment of the index in the database, which says what it indexes."""
        return f"UNIQUE {self.columns}" if self.unique else self.columns + self._where

    @property
    def _where(self) -> str:
        return self.condition and f" WHERE {self.condition}"

    def create_statement(self, name: str, *, concurrently: bool) -> bytes:
        """The statement that builds it under a name."""
        kind = "UNIQUE INDEX" if self.unique else "INDEX"
        how = "CONCURRENTLY " * concurrently
        return (
            f'CREATE {kind} {how}"{name}" ON "{self.table}" ({self.columns}){self._where}'.encode()
        )

    def comment_statement(self, name: str) -> bytes:
        """The statement that stores its definition as a comment."""
        return f"COMMENT ON INDEX \"{name}\" IS '{_quote(self.definition)}'".encode()


def indexes_of(collection: Collection) -> list[IndexSpec]:
    """The indexes of a collection's table, and those of claims."""
    found = [
        IndexSpec(
            collection.name,
            index_name(collection, index.name),
            index.name if index.unique else None,
            ", ".join(f'"{column}"' for column in index.columns),
        )
        for index in table_indexes_of(collection)
    ]
    if collection.name == "jobs":
        for name, definition in CLAIM_INDEXES.items():
            columns, _, condition = definition.partition(" WHERE ")
            found.append(IndexSpec("jobs", name, None, columns, condition))
    return found


def create_indexes(connection: Connection, record_types: Sequence[type[Record]]) -> None:
    """Make the declared indexes. Those that are no longer declared stay: `drop_undeclared`.

    Raises StorageError if rows break a unique key; the previous indexes then remain.
    """
    wanted = {item.name: item for kind in record_types for item in indexes_of(kind.collection)}
    present: dict[str, str | None] = {}
    tables = {kind.collection.name for kind in record_types}
    for table, name, valid, made_of in connection.execute(_PRESENT.encode()).fetchall():
        if table not in tables or not name.startswith(f"{table}__"):
            continue
        if not valid or name.endswith(_NEXT):
            _drop_index(connection, name)  # an interrupted build's
        elif name in wanted:
            present[name] = made_of
    missing = [item for item in wanted.values() if present.get(item.name) != item.definition]
    for item in missing:
        if item.unique:
            _require_unique_rows(connection, item)
    for item in missing:
        _build_index(connection, item, replaces=item.name in present)


def drop_undeclared(connection: Connection, record_types: Sequence[type[Record]]) -> None:
    """Drop the indexes and unique keys that no collection declares any more.

    Not while another release may run, older or newer than this one: it may read by them, and
    rely on the keys.
    """
    declared = {item.name for kind in record_types for item in indexes_of(kind.collection)}
    tables = {kind.collection.name for kind in record_types}
    for table, name, _, _ in connection.execute(_PRESENT.encode()).fetchall():
        if table in tables and name.startswith(f"{table}__") and name not in declared:
            _drop_index(connection, name)


def _require_unique_rows(connection: Connection, wanted: IndexSpec) -> None:
    """Check before an index is begun: even a failing one refuses rows while it is built."""
    columns = wanted.columns.split(", ")
    filled = " AND ".join(f"{column} IS NOT NULL" for column in columns)
    sql = (
        f'SELECT 1 FROM "{wanted.table}" WHERE {filled} GROUP BY {wanted.columns} '
        "HAVING count(*) > 1 LIMIT 1"
    )
    if connection.execute(sql.encode()).fetchone():
        raise _unique_key_broken(wanted)


def _build_index(connection: Connection, wanted: IndexSpec, *, replaces: bool) -> None:
    name = f"{wanted.name}{_NEXT}" if replaces else wanted.name
    try:
        connection.execute("SET lock_timeout = 0")  # it waits for others, but nobody waits for it
        connection.execute(wanted.create_statement(name, concurrently=True))
    except errors.UniqueViolation as error:
        _drop_index(connection, name)
        raise _unique_key_broken(wanted) from redact_error(error)
    finally:
        connection.execute(f"SET lock_timeout = {DDL_LOCK_MS}".encode())
    connection.execute(wanted.comment_statement(name))
    if replaces:

        def swap() -> None:
            with connection.transaction():
                connection.execute(f'DROP INDEX "{wanted.name}"'.encode())
                rename = f'ALTER INDEX "{name}" RENAME TO "{wanted.name}"'
                connection.execute(rename.encode())

        retry_on_lock(swap)


def _drop_index(connection: Connection, name: str) -> None:
    retry_on_lock(
        lambda: connection.execute(f'DROP INDEX CONCURRENTLY IF EXISTS "{name}"'.encode())
    )


def _unique_key_broken(wanted: IndexSpec) -> StorageError:
    return StorageError(f"{wanted.table}: rows break the unique key {wanted.unique}")


def _quote(text: str) -> str:
    return text.replace("'", "''")
