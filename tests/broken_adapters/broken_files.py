"""Adapters on a file that each break one promise: crashes and migrations."""

from __future__ import annotations

import fcntl
import os
import sqlite3
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TypeVar
from unittest import mock

from payments_core.storage.port import Transaction
from payments_core.storage.records import Record
from payments_core.storage.sqlite import schema as sqlite_schema
from payments_core.storage.sqlite.adapter import SqliteStorage

T = TypeVar("T")
Kinds = Sequence[type[Record]]


class CommitForgotten(SqliteStorage):
    """Now and then the answer leaves before the COMMIT, which then does not come."""

    commits = 0

    def _commit(self, connection: sqlite3.Connection) -> None:
        self.commits += 1
        if self.commits % 7:
            super()._commit(connection)


class EveryStatementCommits(SqliteStorage):
    @contextmanager
    def _open_write_transaction(self, durable: bool = True) -> Iterator[sqlite3.Connection]:
        with self._write_lock:
            if self._writer is None:
                self._writer = self._connect()
            yield self._writer

    def _commit(self, connection: sqlite3.Connection) -> None:
        pass


class UniqueIndexesForgotten(SqliteStorage):
    def migrate(self) -> None:
        super().migrate()
        with self._open_write_transaction() as connection:
            connection.execute("ROLLBACK")
            names = "SELECT name FROM sqlite_master WHERE type = 'index' AND sql LIKE '%UNIQUE%'"
            for (name,) in connection.execute(names).fetchall():
                connection.execute(f'DROP INDEX "{name}"')


class MigrationRaces(SqliteStorage):
    """Looks first, and takes the lock for each statement by itself.

    It waits until all four handles of the check have looked, so that the race is met in each run.
    """

    all_have_looked = threading.Barrier(4, timeout=10)

    def migrate(self) -> None:
        connection = self._connect()
        try:
            is_current = sqlite_schema.is_current(connection, self._record_types)
            with suppress(threading.BrokenBarrierError):
                self.all_have_looked.wait()
            if not is_current:
                table = sqlite_schema.SCHEMA_TABLE
                connection.execute(f"CREATE TABLE {table} (id TEXT PRIMARY KEY, fingerprint TEXT)")
                sqlite_schema.migrate_schema(connection, self._record_types)
        finally:
            connection.close()


class MigrationFillsNothing(SqliteStorage):
    def migrate(self) -> None:
        with mock.patch.object(sqlite_schema, "_backfill_table"):
            super().migrate()


class NothingOutlivesTheHandle(SqliteStorage):
    def migrate(self) -> None:
        super().migrate()
        with self._open_write_transaction() as connection:
            connection.execute("ROLLBACK")
            for table in ("suite_marks", "suite_notes", "suite_counters"):
                connection.execute(f"DELETE FROM {table}")


class OneHandle(SqliteStorage):
    """Sound, except that it takes one handle at a time, as embedded databases are."""

    def __init__(self, path: Any, record_types: Kinds) -> None:
        super().__init__(path, record_types)
        self.lock: int | None = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT)
        try:
            fcntl.flock(self.lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self.lock)
            raise OSError(f"the lock on {path} is held") from None

    def close(self) -> None:
        super().close()
        if self.lock is not None:
            os.close(self.lock)
            self.lock = None


class OthersJobsAreNotFound(SqliteStorage):
    """Claims look where this handle has written, and nowhere else."""

    written = 0

    def transact(self, partition: str, work: Callable[[Transaction], T]) -> T:
        self.written += 1
        return super().transact(partition, work)

    def claim(self, queue: str, now: int, **options: Any) -> Any:
        return super().claim(queue, now, **options) if self.written else []


def open_commit_forgotten(url: str, record_types: Kinds) -> CommitForgotten:
    return CommitForgotten(url, record_types)


def open_one_handle(url: str, record_types: Kinds) -> OneHandle:
    return OneHandle(url, record_types)


def open_every_statement_commits(url: str, record_types: Kinds) -> EveryStatementCommits:
    return EveryStatementCommits(url, record_types)
