"""Storage in PostgreSQL, for many machines: psycopg 3.

READ COMMITTED, with row locks for what a work relies on: FOR UPDATE in `get(for_update)`, FOR
SHARE in `hold`, and the version in every UPDATE. Under contention that is several times faster
than SERIALIZABLE, and it is what the port promises, no more. No sequences, triggers, database
time, advisory locks or LISTEN, so that a distributed PostgreSQL can stand in; none was tried.

Bodies are `text`: `jsonb` would reorder keys, round numbers beyond its own and refuse U+0000, and
`json` checks once more what our own encoder wrote. `body::jsonb ->> 'field'` reads them in SQL.

docs/explanation/postgresql.md tells what travels when, and what an operator can set.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import Any, TypeVar

import psycopg
from psycopg.pq import TransactionStatus

from payments_core.clock import Instant
from payments_core.storage.jobs import Job
from payments_core.storage.port import (
    NO_LANES,
    Claimed,
    Located,
    Snapshot,
    StorageError,
    StorageUnavailable,
    Transaction,
    Where,
)
from payments_core.storage.postgres import claims as postgres_claims
from payments_core.storage.postgres import schema as postgres_schema
from payments_core.storage.postgres import soundness as postgres_soundness
from payments_core.storage.postgres import wholesale as postgres_wholesale
from payments_core.storage.postgres.address import Settings, read_url
from payments_core.storage.postgres.errors import (
    INSUFFICIENT_PRIVILEGE,
    commit_error,
    is_lost,
    is_race,
    plain,
    storage_error,
)
from payments_core.storage.postgres.exchange import SNAPSHOT, WRITING, Exchange
from payments_core.storage.postgres.patience import WITHOUT_END
from payments_core.storage.postgres.pool import Pool, settled
from payments_core.storage.postgres.rows import Rows, locate
from payments_core.storage.postgres.writing import WritingRows
from payments_core.storage.records import R, Record, Value
from payments_core.storage.wholesale import BATCH, Alone, Place

T = TypeVar("T")
Connection = psycopg.Connection[tuple[Any, ...]]

LOCK_TIMEOUT_MS = 2_000
POOL_TIMEOUT_S = 5
RERUNS = 20


class PostgresStorage:
    """The storage port over a PostgreSQL database. Tables are found by the search path."""

    def __init__(self, url: str, kinds: Sequence[type[Record]], *, connections: int = 10) -> None:
        self._kinds = tuple(kinds) if Job in kinds else (*kinds, Job)
        self._random = random.Random()
        unless_told = Settings(
            pool=connections, pool_timeout_s=POOL_TIMEOUT_S, lock_timeout_ms=LOCK_TIMEOUT_MS
        )
        self._address = read_url(url, unless_told)
        self._pool = Pool(self._address)

    # The port.

    def transact(self, partition: str, work: Callable[[Transaction], T]) -> T:
        return self._write(lambda exchange: work(WritingRows(exchange, partition)))

    def read(self, partition: str, work: Callable[[Snapshot], T]) -> T:
        return self._look(lambda exchange: work(Rows(exchange, partition)))

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
        return self._look(
            lambda exchange: locate(exchange, kind, lookup, keys, where, after, limit)
        )

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
        return postgres_claims.claim(self._look, self._write, lease)

    def next_due(self, queue: str, after: Instant | None = None) -> Instant | None:
        return self._look(lambda exchange: postgres_claims.next_due(exchange, queue, after))

    def migrate(self) -> None:
        with self._reading() as connection:
            if postgres_schema.is_current(connection, self._kinds):
                return
            postgres_soundness.require_place(connection)
        try:
            with self._writing() as connection:
                postgres_schema.make_lock(connection)
        except StorageError as error:  # most often another process has just made it
            if getattr(error.__cause__, "sqlstate", None) == INSUFFICIENT_PRIVILEGE:
                raise
        until = time.monotonic() + postgres_schema.MIGRATION_S
        while not self._migrate():
            if time.monotonic() > until:
                raise StorageUnavailable("PostgreSQL: another process does not end its migration")
            time.sleep(postgres_schema.LOOK_AGAIN_S)

    def finish_migration(self) -> int:
        """Give every row the columns that its record says, once the release before has ended.

        How many rows were put right. It may be called again, and while the service runs.
        """
        with self._apart() as connection:
            return postgres_schema.refill(connection, self._kinds)

    def close(self) -> None:
        self._pool.close()

    # Beyond the port: `TellsTime` in clock.py, `TellsFaults` in port.py, and `wholesale.py`.

    def server_time(self) -> Instant:
        """The server's present instant. Nothing that is stored depends on it."""
        sql = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint"
        ((now,),) = self._look(lambda exchange: exchange.ask(sql, ()))
        return int(now or 0)

    def faults(self) -> Sequence[str]:
        """What the server is set to that would lose, or hide, what was answered."""
        with self._reading() as connection:
            return postgres_soundness.faults(connection)

    def doubts(self) -> Sequence[str]:
        """What the server is set to that may be wrong."""
        with self._reading() as connection:
            return postgres_soundness.doubts(connection)

    def walk(
        self, kind: type[R], *, after: Place | None = None, limit: int = BATCH
    ) -> Sequence[Located[R]]:
        with self._reading() as connection:
            return postgres_wholesale.walk(connection, kind, after, limit)

    @contextmanager
    def alone(self) -> Iterator[Alone]:
        with self._writing() as connection:
            everything = postgres_wholesale.PostgresAlone(connection, self._kinds)
            yield everything
            everything.finish()

    # Under the port.

    def _migrate(self) -> bool:
        """Migrate if need be and nobody else does; False where another does."""
        with self._writing() as locking:
            if not postgres_schema.lock(locking):
                return False
            if not postgres_schema.is_current(locking, self._kinds):
                with self._apart() as connection:
                    postgres_schema.bring_up_to_date(connection, self._kinds)
                postgres_schema.note(locking, self._kinds)
            return True

    def _look(self, run: Callable[[Exchange], T]) -> T:
        """Run in a snapshot; nothing is committed, so no answer to COMMIT can be lost."""

        def attempt() -> T:
            with self._exchange(SNAPSHOT) as exchange:
                return run(exchange)

        return self._again(attempt)

    def _write(self, run: Callable[[Exchange], T]) -> T:
        """Run in a transaction and commit."""

        def attempt() -> T:
            with self._exchange(WRITING) as exchange:
                result = run(exchange)
                exchange.commit()
                return result

        return self._again(attempt)

    def _again(self, attempt: Callable[[], T]) -> T:
        """Try until no race undoes it and no server goes away under it, with growing pauses.

        Nothing was committed where StorageUnavailable comes out, so the work may run again.
        """
        runs = 0
        until: float | None = None
        while True:
            try:
                return attempt()
            except StorageUnavailable as error:
                if is_race(error.__cause__):
                    runs += 1
                    if runs == RERUNS:
                        text = "other transactions came first too often"
                        raise StorageUnavailable(text) from error
                    pause_s = 0.002 * 2 ** min(runs, 7)
                elif is_lost(error.__cause__):
                    self._pool.drop_idle()
                    now = time.monotonic()
                    first = until is None
                    until = until or now + self._address.settings.failover_s
                    if now >= until:
                        raise
                    pause_s = 0.0 if first else 0.2
                else:
                    raise
            time.sleep(self._random.random() * pause_s)

    @contextmanager
    def _exchange(self, begin: str) -> Iterator[Exchange]:
        """A transaction; what it does not commit is undone."""
        wire = self._pool.take()
        exchange = Exchange(wire, begin)
        try:
            yield exchange
        finally:
            try:
                exchange.leave()
            except BaseException:  # Ctrl-C: what it left open must not be another's to commit
                wire.connection.close()
                raise
            finally:
                self._pool.give_back(wire)

    # Statements beside the daily ones, through the driver's own cursors.

    @contextmanager
    def _reading(self) -> Iterator[Connection]:
        """A snapshot on a connection of the driver's."""
        with self._statements() as connection:
            connection.execute(SNAPSHOT)
            yield connection

    @contextmanager
    def _writing(self) -> Iterator[Connection]:
        """A transaction on a connection of the driver's, for work that may take long."""
        with self._statements() as connection:
            connection.execute(WRITING)
            connection.execute(WITHOUT_END)
            yield connection
            try:
                connection.execute("COMMIT")
            except psycopg.Error as error:
                raise commit_error(error, broken=connection.closed) from plain(error)

    @contextmanager
    def _apart(self) -> Iterator[Connection]:
        """A connection beside the pool's, whose settings may be changed."""
        with _translated(), closing(self._pool.connect().connection) as connection:
            yield connection

    @contextmanager
    def _statements(self) -> Iterator[Connection]:
        """A connection of the driver's, in no transaction and left in none."""
        wire = self._pool.take()
        try:
            connection = settled(wire)
            try:
                with _translated():
                    yield connection
            finally:
                _undo(connection)
        finally:
            self._pool.give_back(wire)


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except psycopg.Error as error:
        raise storage_error(error) from plain(error)


def _undo(connection: Connection) -> None:
    """Roll back what was not committed; a broken connection is closed, and the pool drops it."""
    try:
        if connection.pgconn.transaction_status != TransactionStatus.IDLE:
            connection.execute("ROLLBACK")
    except psycopg.Error:
        connection.close()
    except BaseException:  # Ctrl-C: what it left open must not be another's to commit
        connection.close()
        raise


def open_url(url: str, kinds: Sequence[type[Record]]) -> PostgresStorage:
    """`postgresql://user@host/database`, as libpq reads it, and `Settings` of our own."""
    return PostgresStorage(url, kinds)
