"""All partitions at once, in PostgreSQL (`storage/maintenance.py`)."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import psycopg
from psycopg import errors
from psycopg.pq import TransactionStatus

from payments_core.storage.maintenance import BATCH, PrimaryKey, RecordRow, decode_page
from payments_core.storage.port import LocatedRecord, StorageError, UniqueConflict
from payments_core.storage.postgres.errors import redact_error, storage_error
from payments_core.storage.postgres.snapshot import names_unique_key, unique_key_of
from payments_core.storage.records import R, Record

Connection = psycopg.Connection[tuple[Any, ...]]

LOCK_TIMEOUT_MS = 60_000


def scan_page(
    connection: Connection, kind: type[R], after: PrimaryKey | None, limit: int
) -> list[LocatedRecord[R]]:
    """See `MaintenanceAccess.scan_page`; in the transaction of a connection."""
    sql = f'SELECT partition, id, body FROM "{kind.collection.name}" '

    def fetch_after(after: PrimaryKey | None) -> list[tuple[Any, ...]]:
        return connection.execute(
            (sql + _after_clause(after)).encode(), (*(after or ()), limit)
        ).fetchall()

    return decode_page(kind, after, fetch_after)


def read_rows(
    connection: Connection, kind: type[Record], after: PrimaryKey | None, limit: int
) -> list[RecordRow]:
    """See `read_rows`; in the transaction of a connection."""
    names = "".join(f'"{column}", ' for column in kind.collection.columns)
    sql = f'SELECT partition, id, version, {names}body FROM "{kind.collection.name}" '
    found = connection.execute(
        (sql + _after_clause(after)).encode(), (*(after or ()), limit)
    ).fetchall()
    return [
        RecordRow(partition, id, version, tuple(columns), body)
        for partition, id, version, *columns, body in found
    ]


class PostgresExclusiveAccess:
    """The tables of some kinds, which nobody else writes to until the transaction's end."""

    def __init__(self, connection: Connection, record_types: Collection[type[Record]]) -> None:
        self._connection = connection
        self._loaded: set[str] = set()
        self._failure: BaseException | None = None
        connection.execute(f"SET LOCAL lock_timeout = {LOCK_TIMEOUT_MS}".encode())
        tables = ", ".join(f'"{kind.collection.name}"' for kind in record_types)
        connection.execute(f"LOCK TABLE {tables} IN EXCLUSIVE MODE".encode())

    def read_rows(
        self, kind: type[Record], *, after: PrimaryKey | None = None, limit: int = BATCH
    ) -> Sequence[RecordRow]:
        return read_rows(self._connection, kind, after, limit)

    def load(self, kind: type[Record], rows: Sequence[RecordRow]) -> None:
        collection = kind.collection
        names = "".join(f'"{column}", ' for column in collection.columns)
        sql = f'COPY "{collection.name}" (partition, id, version, {names}body) FROM STDIN'
        try:
            with self._connection.cursor() as cursor, cursor.copy(sql.encode()) as copying:
                for row in rows:
                    copying.write_row((row.partition, row.id, row.version, *row.columns, row.body))
        except psycopg.Error as error:
            # Citus passes on the error of a machine's COPY, but under XX000.
            if isinstance(error, errors.UniqueViolation) or names_unique_key(str(error)):
                named = unique_key_of(collection, error.diag.constraint_name, str(error))
                self._failure = UniqueConflict(collection.name, named)
            else:
                self._failure = storage_error(error)
            raise self._failure from redact_error(error)
        except BaseException as error:
            self._failure = error
            raise
        self._loaded.add(collection.name)

    def raise_failure(self) -> None:
        """Raise the error that ended the transaction, if it was swallowed.

        The server would answer COMMIT with ROLLBACK, and the driver takes that for a success.
        The planner has no statistics of rows loaded at once; until it has, it guesses.
        """
        if self._failure is not None:
            raise self._failure
        if self._connection.info.transaction_status != TransactionStatus.INTRANS:
            raise StorageError("PostgreSQL: the transaction has already ended; nothing was stored")
        for table in sorted(self._loaded):
            self._connection.execute(f'ANALYZE "{table}"'.encode())


def _after_clause(after: PrimaryKey | None) -> str:
    start = "WHERE (partition, id) > (%s, %s) " if after else ""
    return f"{start}ORDER BY partition, id LIMIT %s"
