"""Connections that lose the answer to COMMIT, as networks and disks do."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from typing import Any

import psycopg

from payments_core.storage.postgres.adapter import PostgresStorage
from payments_core.storage.postgres.pipeline import StatementFailed
from payments_core.storage.sqlite.adapter import SqliteStorage


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


class LossyWire:
    """A connection to PostgreSQL that does something else at its next COMMIT."""

    def __init__(self, pipeline: Any, commit: Callable[[Callable[[], Any]], Any]) -> None:
        self._wire = pipeline
        self._commit = commit

    def __getattr__(self, name: str) -> Any:
        return getattr(self._wire, name)

    def run(self, statements: Sequence[tuple[str, Any]]) -> Any:
        if statements[-1][0] != "COMMIT":
            return self._wire.run(statements)
        return self._commit(lambda: self._wire.run(statements))


def _at_next_commit(storage: PostgresStorage, commit: Callable[[Any, Any], Any]) -> None:
    take, give_back = storage._pool.acquire, storage._pool.release

    def lossy() -> Any:
        pipeline = take()

        def once(run: Callable[[], Any]) -> Any:
            storage._pool.acquire = take  # type: ignore[method-assign]
            return commit(pipeline, run)

        return LossyWire(pipeline, once)

    storage._pool.acquire = lossy  # type: ignore[method-assign]
    storage._pool.release = lambda pipeline: give_back(  # type: ignore[method-assign]
        getattr(pipeline, "_wire", pipeline)
    )


def fail_next_postgres_commit(
    storage: PostgresStorage, error: psycopg.Error, *, applied: bool
) -> None:
    """Let the next COMMIT of this handle raise a driver's error, the connection living on."""

    def commit(pipeline: Any, run: Callable[[], Any]) -> Any:
        if applied:
            run()
        raise StatementFailed(error, 10**6)

    _at_next_commit(storage, commit)


def cut_next_postgres_commit(storage: PostgresStorage, *, applied: bool) -> None:
    """Let the connection end before COMMIT is sent, or before its answer comes back."""

    def commit(pipeline: Any, run: Callable[[], Any]) -> Any:
        if not applied:
            pipeline.connection.pgconn.finish()
        run()
        pipeline.connection.close()
        raise StatementFailed(
            psycopg.OperationalError("server closed the connection unexpectedly"), 0
        )

    _at_next_commit(storage, commit)
