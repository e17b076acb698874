"""Storage in PostgreSQL, for many machines: psycopg 3.

READ COMMITTED, with row locks for records that a work relies on: FOR UPDATE in `get(for_update)`,
FOR SHARE in `hold`, and the version in every UPDATE. Under contention that is several times faster
than SERIALIZABLE, and it is exactly what the port promises. No sequences, triggers, database time,
advisory locks or LISTEN, so that a distributed PostgreSQL can replace it.

Bodies are `text`: `jsonb` would reorder keys, round large numbers and refuse U+0000, and
`json` checks again the output of our own encoder. `body::jsonb ->> 'field'` reads them in SQL.

docs/explanation/postgresql.md describes the traffic, and the operator's settings.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import partial
from typing import Any, TypeVar

import psycopg
from psycopg.pq import TransactionStatus

from payments_core.clock import Instant
from payments_core.storage.jobs import Job
from payments_core.storage.maintenance import BATCH, ExclusiveAccess, PrimaryKey, RecordRow
from payments_core.storage.port import (
    NO_LANE_OVERRIDES,
    ClaimedJob,
    LocatedRecord,
    Measure,
    OnDamaged,
    Snapshot,
    StorageError,
    StorageUnavailable,
    Transaction,
    Where,
)
from payments_core.storage.postgres import config_checks as postgres_soundness
from payments_core.storage.postgres import leases as postgres_leases
from payments_core.storage.postgres import maintenance as postgres_wholesale
from payments_core.storage.postgres import schema as postgres_schema
from payments_core.storage.postgres.distribution import is_distributed
from payments_core.storage.postgres.due_jobs import ClaimRequest
from payments_core.storage.postgres.due_partitions import DuePartitions, next_due
from payments_core.storage.postgres.errors import (
    INSUFFICIENT_PRIVILEGE,
    commit_error,
    is_connection_lost,
    is_node_lost,
    is_race,
    redact_error,
    storage_error,
)
from payments_core.storage.postgres.hints import QueueKey
from payments_core.storage.postgres.lock_retry import DISABLE_TIMEOUTS
from payments_core.storage.postgres.pending_transaction import (
    BEGIN_SNAPSHOT,
    BEGIN_WRITE,
    WITHOUT_BEGIN,
    PendingTransaction,
)
from payments_core.storage.postgres.pool import ConnectionPool, to_driver_connection
from payments_core.storage.postgres.snapshot import TOGETHER, PostgresSnapshot, locate, measure
from payments_core.storage.postgres.transaction import PostgresTransaction
from payments_core.storage.postgres.url import ConnectionSettings, parse_url
from payments_core.storage.reads import Get
from payments_core.storage.records import R, Record, RecordTypes, Value
from payments_core.waiting import NO_WAITS, Waits

T = TypeVar("T")
Connection = psycopg.Connection[tuple[Any, ...]]

LOCK_TIMEOUT_MS = 2_000
POOL_TIMEOUT_S = 5
MAX_RERUNS = 20


class PostgresStorage:
    """The storage port over a PostgreSQL database. Tables are found by the search path."""

    def __init__(
        self, url: str, record_types: RecordTypes, waits: Waits = NO_WAITS, connections: int = 10
    ) -> None:
        self._record_types = tuple(record_types) if Job in record_types else (*record_types, Job)
        self._random = random.Random()
        defaults = ConnectionSettings(connections, POOL_TIMEOUT_S, lock_timeout_ms=LOCK_TIMEOUT_MS)
        self._address = parse_url(url, defaults)
        self._pool = ConnectionPool(self._address, waits)
        self._distributed: bool | None = None
        self._claims = DuePartitions(
            partial(self._run_read, begin=WITHOUT_BEGIN, awaits_nodes=False),
            partial(self._run_write, awaits_nodes=False),
        )

    # Methods of the port.

    def transact(self, partition: str, work: Callable[[Transaction], T]) -> T:
        due: dict[QueueKey, Instant] = {}

        def run(transaction: PendingTransaction) -> T:
            tx = PostgresTransaction(transaction, partition)
            result = work(tx)
            due.clear()
            due.update(tx.move_hints(self._claims.hinted))
            return result

        try:
            result = self._run_write(run)
        finally:
            self._claims.note_changed(due)
        self._claims.note_hinted(due)
        return result

    def read(self, partition: str, work: Callable[[Snapshot], T]) -> T:
        return self._run_read(lambda transaction: work(PostgresSnapshot(transaction, partition)))

    def read_apart(self, partition: str, work: Callable[[Snapshot], T]) -> T:
        # No transaction begins.
        return self._run_read(
            lambda transaction: work(PostgresSnapshot(transaction, partition)), begin=WITHOUT_BEGIN
        )

    def fetch(self, partition: str, *reads: Get) -> Sequence[Any]:
        # For one statement no transaction begins.
        def load(transaction: PendingTransaction) -> Sequence[Any]:
            snapshot = PostgresSnapshot(transaction, partition)
            snapshot.read_ahead(*reads)
            return [snapshot.get(read.kind, read.id) for read in reads]

        begin = WITHOUT_BEGIN if len(reads) <= TOGETHER else BEGIN_SNAPSHOT
        return self._run_read(load, begin=begin)

    def locate(
        self,
        kind: type[R],
        lookup: str,
        keys: Sequence[Sequence[Value]],
        *,
        where: Sequence[Where] = (),
        after: tuple[str, str] | None = None,
        limit: int = 100,
        on_damaged: OnDamaged | None = None,
    ) -> Sequence[LocatedRecord[R]]:
        found = (kind, lookup, keys, where, after, limit, on_damaged)
        return self._run_read(lambda transaction: locate(transaction, *found))

    def claim(
        self,
        queue: str,
        now: Instant,
        *,
        lease_ms: int,
        limit: int,
        lane_concurrency: int,
        lane_overrides: Mapping[str, int] = NO_LANE_OVERRIDES,
        holder: str = "",
    ) -> Sequence[ClaimedJob]:
        request = ClaimRequest(
            queue, now, lease_ms, limit, lane_concurrency, lane_overrides, holder
        )
        return self._claims.claim(request)

    def renew(self, claimed: Sequence[ClaimedJob], until: Instant) -> Sequence[ClaimedJob]:
        several = len({item.partition for item in claimed}) > 1
        return postgres_leases.renew(
            partial(self._run_write, awaits_nodes=False),
            claimed,
            until,
            each_partition_apart=several and self._is_distributed(),
        )

    def end_leases(self, queue: str, holder: str, now: Instant) -> int:
        return postgres_leases.end_leases(self._run_read, self.transact, queue, holder, now)

    def find_leases(self, queue: str, after: Instant, limit: int = 100) -> Sequence[ClaimedJob]:
        find = partial(postgres_leases.find_leases, queue=queue, after=after, limit=limit)
        return self._run_read(find, begin=WITHOUT_BEGIN)

    def next_due(self, queue: str, after: Instant | None = None) -> Instant | None:
        return self._run_read(partial(next_due, queue=queue, after=after), begin=WITHOUT_BEGIN)

    def measure(self, partition: str, kind: type[Record], after: str | None, limit: int) -> Measure:
        find = partial(measure, partition=partition, kind=kind, after=after, limit=limit)
        return self._run_read(find, begin=WITHOUT_BEGIN)

    def migrate(self) -> None:
        with self._open_snapshot() as connection:
            if postgres_schema.is_current(connection, self._record_types):
                return
            postgres_soundness.require_usable_schema(connection)
        try:
            with self._open_write_transaction() as connection:
                postgres_schema.create_lock_row(connection)
        except StorageError as error:  # usually another process has just made it
            if getattr(error.__cause__, "sqlstate", None) == INSUFFICIENT_PRIVILEGE:
                raise
        until = time.monotonic() + postgres_schema.MIGRATION_TIMEOUT_S
        while not self._migrate():
            if time.monotonic() > until:
                text = "PostgreSQL: the migration of another process did not end in time"
                raise StorageUnavailable(text)
            time.sleep(postgres_schema.MIGRATION_POLL_S)

    def finish_migration(self) -> int:
        """Give every row the columns of its record, when the previous release has ended.

        Returns how many rows were corrected. It may be repeated, and run beside the service.
        """
        with self._open_extra_connection() as connection:
            return postgres_schema.backfill_all(connection, self._record_types)

    def close(self) -> None:
        self._pool.close()

    # Beyond the port: `HasServerTime` in clock.py, `storage/capabilities.py` and
    # `storage/maintenance.py`.

    def missing_tables(self) -> Sequence[str]:
        with self._open_snapshot() as connection:
            return postgres_schema.find_missing(connection, self._record_types)

    def server_time(self) -> Instant:
        sql = "SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint"
        ((now,),) = self._run_read(lambda opened: opened.query(sql, ()), begin=WITHOUT_BEGIN)
        return int(now or 0)

    def config_errors(self) -> Sequence[str]:
        with self._open_snapshot() as connection:
            return postgres_soundness.config_errors(connection)

    def config_warnings(self) -> Sequence[str]:
        with self._open_snapshot() as connection:
            return postgres_soundness.config_warnings(connection)

    def scan_page(
        self, kind: type[R], *, after: PrimaryKey | None = None, limit: int = BATCH
    ) -> Sequence[LocatedRecord[R]]:
        with self._open_snapshot() as connection:
            return postgres_wholesale.scan_page(connection, kind, after, limit)

    def read_rows(
        self, kind: type[Record], *, after: PrimaryKey | None = None, limit: int = BATCH
    ) -> Sequence[RecordRow]:
        with self._open_snapshot() as connection:
            return postgres_wholesale.read_rows(connection, kind, after, limit)

    @contextmanager
    def lock_exclusively(self) -> Iterator[ExclusiveAccess]:
        with self._open_write_transaction() as connection:
            access = postgres_wholesale.PostgresExclusiveAccess(connection, self._record_types)
            yield access
            access.raise_failure()

    # Internals.

    def _is_distributed(self) -> bool:
        """Whether partitions are on several machines; read once."""
        if self._distributed is None:
            with self._open_snapshot() as connection:
                self._distributed = is_distributed(connection)
        return self._distributed

    def _migrate(self) -> bool:
        """Migrate if necessary and nobody else does; False if another process does."""
        with self._open_write_transaction() as locking:
            if not postgres_schema.try_lock(locking):
                return False
            if not postgres_schema.is_current(locking, self._record_types):
                with self._open_extra_connection() as connection:
                    postgres_schema.migrate_schema(connection, self._record_types)
                postgres_schema.record_fingerprint(locking, self._record_types)
            return True

    def _run_read(
        self,
        run: Callable[[PendingTransaction], T],
        *,
        begin: str = BEGIN_SNAPSHOT,
        awaits_nodes: bool = True,
    ) -> T:
        """Run in a snapshot, or as `begin` says; since nothing is committed, no answer to COMMIT
        can be lost."""

        def attempt() -> T:
            with self._open_transaction(begin) as transaction:
                return run(transaction)

        return self._retry(attempt, awaits_nodes=awaits_nodes)

    def _run_write(self, run: Callable[[PendingTransaction], T], *, awaits_nodes: bool = True) -> T:
        """Run in a transaction and commit."""

        def attempt() -> T:
            with self._open_transaction(BEGIN_WRITE) as transaction:
                result = run(transaction)
                transaction.commit()
                return result

        return self._retry(attempt, awaits_nodes=awaits_nodes)

    def _retry(self, attempt: Callable[[], T], *, awaits_nodes: bool) -> T:
        """Retry until no race undoes it and no server disconnects, with growing pauses.

        It also waits for a machine behind the server, unless the caller has work on others.
        If StorageUnavailable is raised, nothing was committed, so the work may run again.
        """
        runs = 0
        until: float | None = None
        while True:
            try:
                return attempt()
            except StorageUnavailable as error:
                if is_race(error.__cause__):
                    runs += 1
                    if runs == MAX_RERUNS:
                        text = "the transaction lost too many conflicts with others"
                        raise StorageUnavailable(text) from error
                    pause_s = 0.002 * 2 ** min(runs, 7)
                elif is_connection_lost(error.__cause__):
                    if is_node_lost(error.__cause__):
                        if not awaits_nodes:
                            raise
                    else:
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
    def _open_transaction(self, begin: str) -> Iterator[PendingTransaction]:
        """A transaction; it is rolled back unless it commits."""
        pipeline = self._pool.acquire()
        transaction = PendingTransaction(pipeline, begin)
        try:
            yield transaction
        finally:
            try:
                transaction.close()
            except BaseException:  # Ctrl-C: nobody else may commit what it left open
                pipeline.connection.close()
                raise
            finally:
                self._pool.release(pipeline)

    # Rare statements, through the driver's own cursors.

    @contextmanager
    def _open_snapshot(self) -> Iterator[Connection]:
        """A snapshot on a driver connection."""
        with self._borrow_connection() as connection:
            connection.execute(BEGIN_SNAPSHOT)
            yield connection

    @contextmanager
    def _open_write_transaction(self) -> Iterator[Connection]:
        """A transaction on a driver connection, for work that may take long."""
        with self._borrow_connection() as connection:
            connection.execute(BEGIN_WRITE)
            connection.execute(DISABLE_TIMEOUTS)
            yield connection
            try:
                connection.execute("COMMIT")
            except psycopg.Error as error:
                raise commit_error(error, broken=connection.closed) from redact_error(error)

    @contextmanager
    def _open_extra_connection(self) -> Iterator[Connection]:
        """A connection outside the pool, whose settings may be changed."""
        with _translate_errors(), closing(self._pool.connect().connection) as connection:
            postgres_soundness.require_own_session(connection)
            yield connection

    @contextmanager
    def _borrow_connection(self) -> Iterator[Connection]:
        """A driver connection, without a transaction at both ends."""
        pipeline = self._pool.acquire()
        try:
            connection = to_driver_connection(pipeline)
            try:
                with _translate_errors():
                    yield connection
            finally:
                _roll_back(connection)
        finally:
            self._pool.release(pipeline)


@contextmanager
def _translate_errors() -> Iterator[None]:
    try:
        yield
    except psycopg.Error as error:
        raise storage_error(error) from redact_error(error)


def _roll_back(connection: Connection) -> None:
    """Roll back uncommitted work; a broken connection is closed, and the pool drops it."""
    try:
        if connection.pgconn.transaction_status != TransactionStatus.IDLE:
            connection.execute("ROLLBACK")
    except psycopg.Error:
        connection.close()
    except BaseException:  # Ctrl-C: nobody else may commit what it left open
        connection.close()
        raise


def open_url(url: str, record_types: RecordTypes, waits: Waits = NO_WAITS) -> PostgresStorage:
    """`postgresql://user@host/database`, as libpq reads it, and our own `ConnectionSettings`."""
    return PostgresStorage(url, record_types, waits)
