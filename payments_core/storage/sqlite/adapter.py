"""Storage in one SQLite file, for one machine: many threads, and several processes.

WAL with `synchronous=FULL`, except for leases. One writer at a time; readers never wait for it.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from payments_core.clock import Instant
from payments_core.requirements import find_version_fault
from payments_core.storage import one_by_one
from payments_core.storage.capabilities import Integrity
from payments_core.storage.jobs import Job, require_holder
from payments_core.storage.maintenance import BATCH, ExclusiveAccess, PrimaryKey, RecordRow
from payments_core.storage.port import (
    NO_LANE_OVERRIDES,
    ClaimedJob,
    CommitUnknown,
    LocatedRecord,
    Measure,
    OnDamaged,
    Snapshot,
    StorageError,
    StorageUnavailable,
    Transaction,
    Where,
)
from payments_core.storage.reads import Get
from payments_core.storage.records import R, Record, RecordTypes, Value
from payments_core.storage.sqlite import maintenance as sqlite_wholesale
from payments_core.storage.sqlite import schema as sqlite_schema
from payments_core.storage.sqlite.claims import ClaimRequest, end_leases, find_leases, renew
from payments_core.storage.sqlite.connections import open_connection
from payments_core.storage.sqlite.due_partitions import Claims, next_due
from payments_core.storage.sqlite.group_commit import GROUP_LIMIT, GroupCommit
from payments_core.storage.sqlite.integrity import check_integrity
from payments_core.storage.sqlite.open_files import OpenFiles, require_room
from payments_core.storage.sqlite.transaction import (
    MAX_READ_AHEAD,
    SqliteSnapshot,
    SqliteTransaction,
    locate,
    storage_error,
)
from payments_core.storage.sqlite.writer_lock import WriterLock
from payments_core.waiting import NO_WAITS, Waits

T = TypeVar("T")

BUSY_TIMEOUT_S = 5.0
MIN_FREE_BYTES = 16 * 2**20
"""The growth of the log until a checkpoint; with less free space a commit may fail."""


class SqliteStorage:
    """The storage port over an SQLite file. The file is made at the first `migrate`."""

    def __init__(
        self,
        path: str | os.PathLike[str],
        record_types: Sequence[type[Record]],
        *,
        busy_timeout_s: float = BUSY_TIMEOUT_S,
        group_limit: int = GROUP_LIMIT,
        min_free_bytes: int = MIN_FREE_BYTES,
        waits: Waits = NO_WAITS,
    ) -> None:
        """Raises StorageError if this Python has an SQLite that is too old."""
        if fault := find_version_fault("SQLite", sqlite3.sqlite_version_info):
            raise StorageError(fault)
        self._path = Path(path).resolve()  # a link has no companion files beside it
        self._record_types = tuple(record_types) if Job in record_types else (*record_types, Job)
        self._busy_timeout_s = busy_timeout_s
        self._min_free_bytes = min_free_bytes
        gate = self._path.with_name(self._path.name + "-gate")
        self._file_lock = WriterLock(gate, busy_timeout_s)
        self._groups = GroupCommit(
            self._open_write_transaction, lambda open: self._commit(open), waits, group_limit
        )
        self._write_lock = threading.Lock()
        self._writer: sqlite3.Connection | None = None
        self._files = OpenFiles(self._path)
        self._writing_thread: int | None = None
        self._waits_for_disk: bool | None = True
        self._idle_readers: list[sqlite3.Connection] = []
        self._claims = Claims(self._open_snapshot, self._write)
        self._process, self._closed = os.getpid(), False

    # Methods of the port.

    def transact(self, partition: str, work: Callable[[Transaction], T]) -> T:
        def run(connection: sqlite3.Connection) -> T:
            rows = SqliteTransaction(connection, partition)
            result = work(rows)
            rows.raise_failure()
            return result

        return self._write(run)

    def read(self, partition: str, work: Callable[[Snapshot], T]) -> T:
        with self._open_snapshot() as connection:
            return work(SqliteSnapshot(connection, partition))

    read_apart = one_by_one.read_apart

    def fetch(self, partition: str, *reads: Get) -> Sequence[Any]:
        assert len(reads) <= MAX_READ_AHEAD
        with self._open_snapshot(begins=False) as connection:  # one statement sees one moment
            snapshot = SqliteSnapshot(connection, partition)
            snapshot.read_ahead(*reads)
            return [snapshot.get(read.kind, read.id) for read in reads]

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
        with self._open_snapshot() as connection:
            return locate(connection, kind, lookup, keys, where, after, limit, on_damaged)

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
        return self._write(partial(renew, claimed=claimed, until=until), durable=False)

    def end_leases(self, queue: str, holder: str, now: Instant) -> int:
        require_holder(holder)
        return self._write(partial(end_leases, queue=queue, holder=holder, now=now))

    def find_leases(self, queue: str, after: Instant, limit: int = 100) -> Sequence[ClaimedJob]:
        with self._open_snapshot() as connection:
            return find_leases(connection, queue, after, limit)

    def next_due(self, queue: str, after: Instant | None = None) -> Instant | None:
        with self._open_snapshot() as connection:
            return next_due(connection, queue, after)

    def measure(self, partition: str, kind: type[Record], after: str | None, limit: int) -> Measure:
        with self._open_snapshot(begins=False) as connection:
            return sqlite_wholesale.measure(connection, partition, kind, after, limit)

    def migrate(self) -> None:
        with self._open_snapshot() as connection:
            if sqlite_schema.is_current(connection, self._record_types):
                return
        self._change_schema(self._migrate)

    def finish_migration(self) -> int:
        """Give every row the columns of its record, when the previous release has ended.

        Returns how many rows were corrected. It may be repeated, and run beside the service.
        """
        corrected = 0
        for kind in self._record_types:
            last: int | None = 0
            while last is not None:
                refill = partial(sqlite_schema.backfill_batch, kind=kind, after=last)
                last, found = self._write(refill)
                corrected += found
        self._change_schema(partial(sqlite_schema.drop_undeclared, record_types=self._record_types))
        return corrected

    def close(self) -> None:
        self._closed = True
        with self._write_lock:
            if self._writer is not None:
                self._files.forget()
                self._writer.close()
                self._writer = None
            self._file_lock.close()
        while self._idle_readers:
            self._idle_readers.pop().close()

    # Beyond the port: `storage/capabilities.py` and `storage/maintenance.py`.

    def missing_tables(self) -> Sequence[str]:
        """What a file lacks that `migrate` has not made, or not for this release."""
        with self._open_snapshot() as connection:
            return sqlite_schema.find_missing(connection, self._record_types)

    def require_writable(self) -> None:
        """Whether the files have their names, and their disk is writable and has room."""
        self._files.require_named()
        require_room(self._path.parent, self._min_free_bytes)

    def check_integrity(self, limit_s: float) -> Integrity:
        with self._open_snapshot() as connection:
            return check_integrity(connection, limit_s)

    def config_errors(self) -> Sequence[str]:
        """Whether the file was retired."""
        with self._open_snapshot() as connection:
            retired = sqlite_wholesale.is_retired(connection)
        moved = "its records were moved to another storage; it accepts no writes"
        return [moved] if retired else []

    def config_warnings(self) -> Sequence[str]:
        """Always empty: this adapter makes all settings itself."""
        return ()

    def scan_page(
        self, kind: type[R], *, after: PrimaryKey | None = None, limit: int = BATCH
    ) -> Sequence[LocatedRecord[R]]:
        with self._open_snapshot() as connection:
            return sqlite_wholesale.scan_page(connection, kind, after, limit)

    def read_rows(
        self, kind: type[Record], *, after: PrimaryKey | None = None, limit: int = BATCH
    ) -> Sequence[RecordRow]:
        with self._open_snapshot() as connection:
            return sqlite_wholesale.read_rows(connection, kind, after, limit)

    def lock_exclusively(self) -> AbstractContextManager[ExclusiveAccess]:
        self._require_open()
        file_lock = WriterLock(
            self._path.with_name(self._path.name + "-gate"), self._busy_timeout_s
        )
        return sqlite_wholesale.lock_exclusively(self._connect, file_lock, self._commit)

    # Internals.

    def _write(self, run: Callable[[sqlite3.Connection], T], *, durable: bool = True) -> T:
        """Run in a transaction, perhaps together with others, and commit."""
        self._require_no_transaction()
        return self._groups.run(run, durable=durable)

    def _change_schema(self, run: Callable[[sqlite3.Connection], object]) -> None:
        """Run in a transaction of its own, and commit."""
        self._require_no_transaction()
        with self._open_write_transaction() as connection:
            connection.execute("PRAGMA temp_store = FILE")  # an index is sorted there
            try:
                run(connection)
                self._commit(connection)
            finally:
                connection.execute("PRAGMA temp_store = MEMORY")

    def _require_no_transaction(self) -> None:
        if self._writing_thread == threading.get_ident():
            raise RuntimeError("a transaction must not start another transaction")

    @contextmanager
    def _open_write_transaction(self, durable: bool = True) -> Iterator[sqlite3.Connection]:
        """An exclusive transaction on the file; it is rolled back unless it commits."""
        with self._write_lock:
            self._require_open()
            if self._writer is None:
                self._writer = self._connect()
                self._files.remember(self._writer)
                self._waits_for_disk = True
            with self._file_lock.acquire():
                self._writing_thread = threading.get_ident()
                try:
                    if durable != self._waits_for_disk:
                        self._waits_for_disk = None  # until it is done
                        sync = "FULL" if durable else "NORMAL"
                        self._writer.execute(f"PRAGMA synchronous = {sync}")
                        self._waits_for_disk = durable
                    self._writer.execute("BEGIN IMMEDIATE")
                    yield self._writer
                except sqlite3.Error as error:
                    raise storage_error(error) from error
                finally:
                    self._writing_thread = None
                    _roll_back(self._writer)

    def _migrate(self, connection: sqlite3.Connection) -> None:
        # Another process may have done it while this one waited for the lock.
        if not sqlite_schema.is_current(connection, self._record_types):
            sqlite_schema.migrate_schema(connection, self._record_types)

    def _commit(self, connection: sqlite3.Connection) -> None:
        """Commit; raises StorageUnavailable if nothing was written, CommitUnknown if it may be.

        After an I/O error the log may contain the whole transaction: a crash would restore it.
        """
        try:
            connection.execute("COMMIT")
        except sqlite3.Error as error:
            if error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_IOERR:
                raise CommitUnknown(f"SQLite: {error}") from error
            raise storage_error(error) from error

    def _open_snapshot(self, *, begins: bool = True) -> _OpenSnapshot:
        """A snapshot on its own connection, which another thread may use afterwards.

        Without one, each statement sees its own moment.
        """
        return _OpenSnapshot(self, begins)

    def _take_reader(self) -> sqlite3.Connection:
        self._require_open()
        try:
            return self._idle_readers.pop()
        except IndexError:
            connection = self._connect()
            connection.execute("PRAGMA query_only = ON")
            return connection

    def _give_back_reader(self, connection: sqlite3.Connection) -> None:
        _roll_back(connection)
        self._idle_readers.append(connection)
        if self._closed:
            self.close()

    def _require_open(self) -> None:
        if self._closed:
            raise StorageUnavailable("the storage is closed")
        if self._process != os.getpid():
            raise StorageUnavailable("SQLite connections do not survive a fork; open it again")

    def _connect(self) -> sqlite3.Connection:
        self._files.require_named()  # or this one would write to other files than the others
        with _translate_errors():
            return open_connection(self._path, self._busy_timeout_s)


class _OpenSnapshot(AbstractContextManager["sqlite3.Connection"]):
    """The result of `_open_snapshot`; a generator would add four calls, often in each request."""

    __slots__ = ("_begins", "_connection", "_storage")

    def __init__(self, storage: SqliteStorage, begins: bool) -> None:
        self._storage = storage
        self._begins = begins

    def __enter__(self) -> sqlite3.Connection:
        self._connection = self._storage._take_reader()
        if self._begins:
            with _translate_errors():  # a connection that cannot begin is not used again
                self._connection.execute("BEGIN")
        return self._connection

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self._storage._give_back_reader(self._connection)
        if isinstance(error, sqlite3.Error):
            raise storage_error(error) from error


@contextmanager
def _translate_errors() -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise storage_error(error) from error


def _roll_back(connection: sqlite3.Connection) -> None:
    """Roll back what was not committed. SQLite may already have done so after an error."""
    if connection.in_transaction:
        connection.execute("ROLLBACK")


def open_url(url: str, record_types: RecordTypes, waits: Waits = NO_WAITS) -> SqliteStorage:
    """`sqlite:///relative.db`, or `sqlite:////absolute.db`."""
    path = url.removeprefix("sqlite:///")
    if path in (url, "", ":memory:") or any(sign in path for sign in "?#"):
        raise StorageError("expected sqlite:///relative.db or sqlite:////absolute.db")
    return SqliteStorage(path, record_types, waits=waits)
