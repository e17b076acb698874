"""All partitions at once, in an SQLite file (`storage/maintenance.py`).

A retired file refuses writes by triggers, so that a process of an older release, and
one that already runs on it, cannot write to records that nobody reads any more.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from payments_core.storage.maintenance import (
    BATCH,
    ExclusiveAccess,
    PrimaryKey,
    RecordRow,
    decode_page,
)
from payments_core.storage.port import LocatedRecord, Measure
from payments_core.storage.records import R, Record
from payments_core.storage.sqlite.queries import BODY_BYTES
from payments_core.storage.sqlite.schema import SCHEMA_TABLE
from payments_core.storage.sqlite.transaction import storage_error, unique_conflict
from payments_core.storage.sqlite.writer_lock import WriterLock

RETIRE_TRIGGER_PREFIX = "retired__"
"""The prefix of the names of the triggers that refuse writes."""


def scan_page(
    connection: sqlite3.Connection, kind: type[R], after: PrimaryKey | None, limit: int
) -> list[LocatedRecord[R]]:
    """See `MaintenanceAccess.scan_page`; on a connection whose transaction the caller
    began."""

    def fetch_after(after: PrimaryKey | None) -> list[tuple[str, str, bytes]]:
        return connection.execute(
            f'SELECT partition, id, {BODY_BYTES} FROM "{kind.collection.name}" '
            f"{_after_clause(after)}",
            (*(after or ()), limit),
        ).fetchall()

    return decode_page(kind, after, fetch_after)


def read_rows(
    connection: sqlite3.Connection, kind: type[Record], after: PrimaryKey | None, limit: int
) -> list[RecordRow]:
    """See `read_rows`; on a connection whose transaction the caller began."""
    collection = kind.collection
    names = "".join(f'"{column}", ' for column in collection.columns)
    found = connection.execute(
        f'SELECT partition, id, version, {names}{BODY_BYTES} FROM "{collection.name}" '
        f"{_after_clause(after)}",
        (*(after or ()), limit),
    ).fetchall()
    return [
        RecordRow(partition, id, version, tuple(columns), body.decode(errors="surrogateescape"))
        for partition, id, version, *columns, body in found
    ]


def measure(
    connection: sqlite3.Connection,
    partition: str,
    kind: type[Record],
    after: str | None,
    limit: int,
) -> Measure:
    """See `Storage.measure`; in one statement.

    It reads the bodies: `octet_length`, which does not, is newer than the SQLite that is required.
    """
    start = "" if after is None else "AND id > ?"
    sql = (
        "SELECT count(*), coalesce(sum(bytes), 0), max(id) FROM ("
        f'SELECT id, length({BODY_BYTES}) AS bytes FROM "{kind.collection.name}" '
        f"WHERE partition = ? {start} ORDER BY id LIMIT ?)"
    )
    values = (partition, *(() if after is None else (after,)), limit)
    rows, measured, last = connection.execute(sql, values).fetchone()
    return Measure(measured, last if rows == limit else None)


@contextmanager
def lock_exclusively(
    connect: Callable[[], sqlite3.Connection],
    file_lock: WriterLock,
    commit: Callable[[sqlite3.Connection], None],
) -> Iterator[ExclusiveAccess]:
    """See `MaintenanceAccess.lock_exclusively`; on its own connection."""
    connection = connect()
    try:
        # The gate orders the writers. Later callers wait for SQLite's own lock,
        # and give up in time: at the gate each would leave a thread behind.
        with file_lock.acquire():
            connection.execute("BEGIN IMMEDIATE")
        access = SqliteExclusiveAccess(connection)
        yield access
        access.raise_failure()
        commit(connection)
    except sqlite3.Error as error:
        raise storage_error(error) from error
    finally:
        connection.close()  # uncommitted work is undone
        file_lock.close()


class SqliteExclusiveAccess:
    """A file that nobody else writes to, on a connection that began with BEGIN IMMEDIATE."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._failure: BaseException | None = None

    def read_rows(
        self, kind: type[Record], *, after: PrimaryKey | None = None, limit: int = BATCH
    ) -> Sequence[RecordRow]:
        return read_rows(self._connection, kind, after, limit)

    def load(self, kind: type[Record], rows: Sequence[RecordRow]) -> None:
        collection = kind.collection
        names = "".join(f'"{column}", ' for column in collection.columns)
        marks = ", ".join("?" * (len(collection.columns) + 4))
        sql = f'INSERT INTO "{collection.name}" (partition, id, version, {names}body) '
        try:
            self._connection.executemany(
                f"{sql} VALUES ({marks})",
                [(row.partition, row.id, row.version, *row.columns, row.body) for row in rows],
            )
        except sqlite3.IntegrityError as error:
            self._failure = unique_conflict(collection, error)
            raise self._failure from error
        except BaseException as error:
            self._failure = error
            raise

    def is_retired(self) -> bool:
        return is_retired(self._connection)

    def retire(self, note: str) -> None:
        self.reinstate()
        # So `migrate` has something to write, and no process starts on the file.
        self._connection.execute(f"UPDATE {SCHEMA_TABLE} SET fingerprint = ''")
        message = note.replace("'", "''")
        for table in self._table_names():
            for act in ("INSERT", "UPDATE", "DELETE"):
                self._connection.execute(
                    f'CREATE TRIGGER "{RETIRE_TRIGGER_PREFIX}{table}_{act}" '
                    f'BEFORE {act} ON "{table}" '
                    f"BEGIN SELECT RAISE(ABORT, '{message}'); END"
                )

    def reinstate(self) -> bool:
        found = _retirement_triggers(self._connection)
        for name in found:
            self._connection.execute(f'DROP TRIGGER "{name}"')
        return bool(found)

    def raise_failure(self) -> None:
        """Raise the error that ended a load, if it was swallowed: part of it may be stored."""
        if self._failure is not None:
            raise self._failure

    def _table_names(self) -> list[str]:
        found = self._connection.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' "
            "ESCAPE '\\'"
        ).fetchall()
        return [name for (name,) in found]


def is_retired(connection: sqlite3.Connection) -> bool:
    """Whether the file refuses writes, since its records are elsewhere now."""
    return bool(_retirement_triggers(connection))


def _retirement_triggers(connection: sqlite3.Connection) -> list[str]:
    """The triggers that refuse writes."""
    found = connection.execute(
        "SELECT name FROM sqlite_master WHERE type = 'trigger' AND substr(name, 1, ?) = ?",
        (len(RETIRE_TRIGGER_PREFIX), RETIRE_TRIGGER_PREFIX),
    ).fetchall()
    return [name for (name,) in found]


def _after_clause(after: PrimaryKey | None) -> str:
    start = "WHERE (partition, id) > (?, ?) " if after else ""
    return f"{start}ORDER BY partition, id LIMIT ?"
