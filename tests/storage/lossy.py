"""Connections that lose the answer to COMMIT, as networks and disks do."""

from __future__ import annotations

import sqlite3
from typing import Any

import psycopg

from payments_core.storage.postgres import PostgresStorage
from payments_core.storage.sqlite import SqliteStorage


class SqliteCommit:
    """A connection whose COMMIT answers with an error."""

    def __init__(self, connection: sqlite3.Connection, code: int, *, applied: bool) -> None:
        self.connection = connection
        self.code = code
        self.applied = applied

    def execute(self, sql: str) -> None:
        assert sql == "COMMIT"
        if self.applied:
            self.connection.execute(sql)
        error = sqlite3.OperationalError("as the test says")
        error.sqlite_errorcode = self.code
        raise error


def fail_next_sqlite_commit(storage: SqliteStorage, code: int, *, applied: bool) -> None:
    """Let the next COMMIT of this handle fail with SQLite's code."""

    def commit(connection: sqlite3.Connection) -> None:
        del storage._commit  # type: ignore[method-assign]
        storage._commit(SqliteCommit(connection, code, applied=applied))  # type: ignore[arg-type]

    storage._commit = commit  # type: ignore[method-assign]


class PostgresCommit:
    """A connection that raises instead of answering to COMMIT."""

    def __init__(self, connection: Any, error: psycopg.Error, *, applied: bool) -> None:
        self.connection = connection
        self.error = error
        self.applied = applied

    @property
    def closed(self) -> bool:
        closed: bool = self.connection.closed
        return closed

    def commit(self) -> None:
        if self.applied:
            self.connection.commit()
        raise self.error


def fail_next_postgres_commit(
    storage: PostgresStorage, error: psycopg.Error, *, applied: bool
) -> None:
    """Let the next COMMIT of this handle raise a driver's error."""

    def commit(connection: Any) -> None:
        del storage._commit  # type: ignore[method-assign]
        lossy: Any = PostgresCommit(connection, error, applied=applied)
        storage._commit(lossy)

    storage._commit = commit  # type: ignore[method-assign]


def cut_next_postgres_commit(storage: PostgresStorage, *, applied: bool) -> None:
    """Let the connection end before COMMIT is sent, or before its answer comes back."""

    def commit(connection: Any) -> None:
        del storage._commit  # type: ignore[method-assign]
        if applied:
            lost = psycopg.OperationalError("server closed the connection unexpectedly")
            lossy: Any = PostgresCommit(connection, lost, applied=True)
            try:
                storage._commit(lossy)
            finally:
                connection.close()
        else:
            connection.pgconn.finish()
            storage._commit(connection)

    storage._commit = commit  # type: ignore[method-assign]
