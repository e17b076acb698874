"""Storage in PostgreSQL, for many machines: psycopg 3 and its pool.

READ COMMITTED, with row locks for what a work relies on: FOR UPDATE in `get(for_update)`, FOR
SHARE in `hold`, and the version in every UPDATE. Under contention that is several times faster
than SERIALIZABLE, and it is what the port promises, no more. No sequences, triggers, database
time, advisory locks or LISTEN, so that a distributed PostgreSQL can stand in; none was tried.

Bodies are `text`: `jsonb` would reorder keys, round numbers beyond its own and refuse U+0000, and
`json` checks once more what our own encoder wrote. `body::jsonb ->> 'field'` reads them in SQL.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

import psycopg
from psycopg import IsolationLevel, errors
from psycopg_pool import ConnectionPool, PoolClosed, PoolTimeout

from payments_core.clock import Instant
from payments_core.jobs.record import Job
from payments_core.storage import postgres_claims, postgres_schema
from payments_core.storage.port import (
    NO_LANES,
    Claimed,
    CommitUnknown,
    Located,
    Snapshot,
    StorageError,
    StorageUnavailable,
    Transaction,
    Where,
)
from payments_core.storage.postgres_rows import Rows, WritingRows, locate, storage_error
from payments_core.storage.records import R, Record, Value

T = TypeVar("T")
Connection = psycopg.Connection[tuple[Any, ...]]

LOCK_TIMEOUT_MS = 2_000
POOL_TIMEOUT_S = 5.0
RERUNS = 20

_AGAIN = (errors.SerializationFailure, errors.DeadlockDetected)


class PostgresStorage:
    """The storage port over a PostgreSQL database. Tables are found by the search path."""

    def __init__(self, url: str, kinds: Sequence[type[Record]], *, connections: int = 10) -> None:
        self._kinds = tuple(kinds) if Job in kinds else (*kinds, Job)
        self._random = random.Random()
        self._pool: ConnectionPool[Connection] = ConnectionPool(
            url,
            min_size=0,
            max_size=connections,
            timeout=POOL_TIMEOUT_S,
            configure=_configure,
            open=False,
        )
        self._pool.open()

    # The port.

    def transact(self, partition: str, work: Callable[[Transaction], T]) -> T:
        return self._again(lambda: self._attempt(partition, work))

    def read(self, partition: str, work: Callable[[Snapshot], T]) -> T:
        with self._reading() as connection:
            return work(Rows(connection, partition))

    def locate(
        self,
        kind: type[R],
        lookup: str,
        keys: Sequence[Sequence[Value]],
        *,
        where: Sequence[Where] = (),
        after: tuple[str, str] | None = None,
        limit: int = 100,
    ) -> Sequence[Located[R]]:
        with self._reading() as connection:
            return locate(connection, kind, lookup, keys, where, after, limit)

    def claim(
        self,
        queue: str,
        now: Instant,
        *,
        lease_ms: int,
        limit: int,
        slots: int,
        of_lane: Mapping[str, int] = NO_LANES,
    ) -> Sequence[Claimed]:
        lease = postgres_claims.Lease(queue, now, lease_ms, limit, slots, of_lane)

        def look() -> set[str]:
            with self._writing() as connection:
                return postgres_claims.due_lanes(connection, lease)

        lanes = self._again(look)
        if not lanes:
            return []

        def attempt() -> list[Claimed]:
            with self._writing() as connection:
                return postgres_claims.lease_jobs(connection, lease, lanes)

        return self._again(attempt)

    def next_due(self, queue: str, after: Instant | None = None) -> Instant | None:
        with self._reading() as connection:
            return postgres_claims.next_due(connection, queue, after)

    def migrate(self) -> None:
        with self._writing() as connection:
            if postgres_schema.is_current(connection, self._kinds):
                return
        with suppress(StorageError), self._writing() as connection:
            postgres_schema.make_lock(connection)  # fails where another process just made it
        with self._writing() as connection:
            postgres_schema.bring_up_to_date(connection, self._kinds)

    def close(self) -> None:
        self._pool.close()

    # Under the port.

    def _attempt(self, partition: str, work: Callable[[Transaction], T]) -> T:
        with self._writing() as connection:
            rows = WritingRows(connection, partition)
            result = work(rows)
            rows.finish()  # COMMIT of a failed transaction rolls back and calls it success
            return result

    def _again(self, attempt: Callable[[], T]) -> T:
        """Try until no deadlock or serialization failure undoes it, with growing pauses."""
        for run in range(RERUNS):
            try:
                return attempt()
            except StorageUnavailable as error:
                if not isinstance(error.__cause__, _AGAIN):
                    raise
            time.sleep(self._random.random() * 0.002 * 2 ** min(run, 7))
        raise StorageUnavailable("other transactions came first too often")

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        """A snapshot; nothing is committed, so no answer to COMMIT can be lost."""
        with self._connection() as connection:
            connection.isolation_level = IsolationLevel.REPEATABLE_READ
            connection.read_only = True
            try:
                with _translated():
                    yield connection
            finally:
                _undo(connection)
                if not connection.closed:
                    connection.isolation_level = IsolationLevel.READ_COMMITTED
                    connection.read_only = False

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        with self._connection() as connection:
            try:
                with _translated():
                    yield connection
                self._commit(connection)
            finally:
                _undo(connection)

    @contextmanager
    def _connection(self) -> Iterator[Connection]:
        try:
            connection = self._pool.getconn()
        except (PoolTimeout, PoolClosed, psycopg.Error) as error:
            raise StorageUnavailable(f"PostgreSQL: {error}") from error
        try:
            yield connection
        finally:
            self._pool.putconn(connection)

    def _commit(self, connection: Connection) -> None:
        """Commit; raises CommitUnknown unless the server itself said that nothing happened."""
        try:
            connection.commit()
        except psycopg.Error as error:
            if error.sqlstate is None or isinstance(error, errors.StatementCompletionUnknown):
                raise CommitUnknown(f"PostgreSQL: {error}") from error
            if connection.closed:  # the server ended it, perhaps after it had committed
                raise CommitUnknown(f"PostgreSQL: {error}") from error
            raise storage_error(error) from error


def _configure(connection: Connection) -> None:
    connection.isolation_level = IsolationLevel.READ_COMMITTED
    connection.execute(f"SET lock_timeout = {LOCK_TIMEOUT_MS}")
    connection.commit()


def _undo(connection: Connection) -> None:
    """Roll back what was not committed; a broken connection is closed, and the pool drops it."""
    try:
        connection.rollback()
    except psycopg.Error:
        connection.close()


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except psycopg.Error as error:
        raise storage_error(error) from error


def open_url(url: str, kinds: Sequence[type[Record]]) -> PostgresStorage:
    """`postgresql://user@host/database`, as libpq reads it."""
    return PostgresStorage(url, kinds)
