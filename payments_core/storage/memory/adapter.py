"""Storage in memory: the reference model of the port, for tests and experiments.

With a `Weakness` it keeps only the port's promises, and deliberately breaks anything else that a
caller might rely on: works interleave and run again, unlocked reads are stale, pages end
short, answers to COMMIT are lost, claims return less than they could or come from clocks that run
ahead. Code that passes on it does not depend on luck.
"""

from __future__ import annotations

import random
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from heapq import nsmallest
from typing import TypeVar

import attrs

from payments_core.clock import SECOND, Instant
from payments_core.evolve import evolve
from payments_core.storage import documents, one_by_one
from payments_core.storage.claim_semantics import (
    ClaimRings,
    choose_latest_leases,
    counts_for_claim,
    free,
    is_leased_by,
    lease,
    ready_at,
)
from payments_core.storage.damaged_records import decode_located
from payments_core.storage.jobs import Job, require_holder
from payments_core.storage.maintenance import BATCH, ExclusiveAccess, RecordRow
from payments_core.storage.memory import maintenance as memory_wholesale
from payments_core.storage.memory.transaction import (
    MemorySnapshot,
    MemoryTransaction,
    ReadMethod,
    RerunRequired,
    StoredRow,
    Table,
    Tables,
    UniqueKey,
    to_stored_row,
)
from payments_core.storage.port import (
    NO_LANE_OVERRIDES,
    SCAN_LIMIT,
    ClaimedJob,
    CommitUnknown,
    LocatedRecord,
    Measure,
    OnDamaged,
    Snapshot,
    StorageUnavailable,
    Transaction,
    Where,
)
from payments_core.storage.query_semantics import (
    PrimaryKey,
    find_primary_keys,
    valid_lookup_keys,
)
from payments_core.storage.records import R, Record, RecordTypes, Value
from payments_core.waiting import NO_WAITS, Waits

T = TypeVar("T")

RECENT_WRITES = 20


@attrs.frozen
class Weakness:
    """How often the weak mode does what the port allows; each a share of 1.

    `unavailable` is 0 by default: a caller can do nothing about it except report it.
    """

    seed: int = 0
    stale_get: float = 0.1
    stale_find: float = 0.3
    short_page: float = 0.1
    rerun: float = 0.1
    lost_commit: float = 0.03
    short_claim: float = 0.1
    clock_ahead_ms: int = 40 * SECOND
    clock_ahead: float = 0.2
    unavailable: float = 0.0


class MemoryStorage:
    """Everything in dictionaries under one lock. Nothing outlives the process."""

    def __init__(self, weakness: Weakness | None = None) -> None:
        self._lock = threading.RLock()
        self._tables: Tables = defaultdict(dict)
        self._uniques: dict[UniqueKey, str] = {}
        self._rings = ClaimRings()
        self._recent: list[tuple[str, str, str, StoredRow | None]] = []
        self._copies: dict[str, Tables] = {}
        """Snapshots of partitions that nobody has written since; readers share one."""
        self._weakness = weakness
        self._random = random.Random(weakness.seed if weakness else 0)
        self._busy = threading.local()
        self._closed = False

    # Methods of the port.

    def transact(self, partition: str, work: Callable[[Transaction], T]) -> T:
        if getattr(self._busy, "transacting", False):
            raise RuntimeError("a transaction must not start another transaction")
        self._busy.transacting = True
        try:
            if self._weakness is None:
                with self._lock:
                    return self._attempt(partition, work)
            while True:
                try:
                    return self._weak_attempt(partition, work, self._weakness)
                except RerunRequired:
                    continue
        finally:
            self._busy.transacting = False

    def read(self, partition: str, work: Callable[[Snapshot], T]) -> T:
        with self._lock:
            self._require_open()
            if self._weakness is None:
                return work(MemorySnapshot(self._tables, partition))
            snapshot = MemorySnapshot(self._copy(partition), partition, self._scan_limit)
        return work(snapshot)  # others continue writing meanwhile

    read_apart = one_by_one.read_apart
    fetch = one_by_one.fetch

    def _copy(self, partition: str) -> Tables:
        """The tables of a partition as they are now; under the lock."""
        tables = self._copies.get(partition)
        if tables is None:
            tables = self._copies[partition] = defaultdict(dict)
            for place, rows in self._tables.items():
                if place[0] == partition:
                    tables[place] = dict(rows)
        return tables

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
        collection = kind.collection
        with self._lock:
            self._require_open()
            rows = dict(self._iter_rows(collection.name))
        chosen = collection.lookup(lookup)
        findable = valid_lookup_keys(collection, chosen, keys, limit)
        columns = {place: row.columns for place, row in rows.items()}
        places = find_primary_keys(chosen, findable, columns, where, after, limit)
        found = ((place, rows[place].body) for place in places)
        return [
            LocatedRecord(place[0], record)
            for place, body in found
            if (record := decode_located(kind, *place, body, on_damaged)) is not None
        ]

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
        with self._lock:
            self._require_open()
            if self._weakness and self._should_occur(self._weakness.clock_ahead):
                now += self._weakness.clock_ahead_ms
            if self._weakness and self._should_occur(self._weakness.short_claim):
                limit = self._random.randrange(limit + 1)
            jobs = (job for job in self._iter_jobs(queue) if counts_for_claim(job[1], now))
            chosen = self._rings.choose(queue, jobs, now, limit, lane_concurrency, lane_overrides)
            return [
                self._lease(partition, row, now + lease_ms, holder) for partition, row in chosen
            ]

    def renew(self, claimed: Sequence[ClaimedJob], until: Instant) -> Sequence[ClaimedJob]:
        with self._lock:
            self._require_open()
            held = [item for item in claimed if self._is_held(item)]
            for item in held:
                self._store_job(item.partition, evolve(item.job, lease_until=until))
            return held

    def end_leases(self, queue: str, holder: str, now: Instant) -> int:
        require_holder(holder)
        with self._lock:
            self._require_open()
            ended = 0
            for partition, row in list(self._iter_jobs(queue)):
                job = row.read(Job)
                if is_leased_by(holder, job, now):
                    self._store_job(partition, documents.stamp(free(job), job.version + 1))
                    ended += 1
            return ended

    def find_leases(self, queue: str, after: Instant, limit: int = 100) -> Sequence[ClaimedJob]:
        with self._lock:
            self._require_open()
            found = choose_latest_leases(self._iter_jobs(queue), after, limit)
            return [ClaimedJob(partition, row.read(Job)) for partition, row in found]

    def _is_held(self, claimed: ClaimedJob) -> bool:
        row = self._tables[claimed.partition, Job.collection.name].get(claimed.job.id)
        return row is not None and row.version == claimed.job.version

    def next_due(self, queue: str, after: Instant | None = None) -> Instant | None:
        with self._lock:
            self._require_open()
            instants = [ready_at(row) for _, row in self._iter_jobs(queue)]
        return min((due for due in instants if after is None or due > after), default=None)

    def measure(self, partition: str, kind: type[Record], after: str | None, limit: int) -> Measure:
        with self._lock:
            self._require_open()
            rows = self._tables[partition, kind.collection.name]
            if self._weakness and self._should_occur(self._weakness.short_page):
                limit = min(limit, self._random.randint(1, 5))
            later = nsmallest(limit + 1, (id for id in rows if after is None or id > after))
            measured = sum(len(rows[id].body) for id in later[:limit])
            return Measure(measured, later[limit - 1] if len(later) > limit else None)

    def migrate(self) -> None:
        self._require_open()

    def close(self) -> None:
        self._closed = True

    # Beyond the port: `storage/maintenance.py`.

    def scan_page(
        self, kind: type[R], *, after: PrimaryKey | None = None, limit: int = BATCH
    ) -> Sequence[LocatedRecord[R]]:
        with self._lock:
            self._require_open()
            return memory_wholesale.scan_page(self._tables, kind, after, limit)

    def read_rows(
        self, kind: type[Record], *, after: PrimaryKey | None = None, limit: int = BATCH
    ) -> Sequence[RecordRow]:
        with self._lock:
            self._require_open()
            return memory_wholesale.read_rows(self._tables, kind, after, limit)

    @contextmanager
    def lock_exclusively(self) -> Iterator[ExclusiveAccess]:
        with self._lock:
            self._require_open()
            self._copies.clear()
            with memory_wholesale.lock_exclusively(self._tables, self._uniques) as access:
                yield access

    # Internals.

    def _require_open(self) -> None:
        if self._closed:
            raise StorageUnavailable("the storage is closed")

    def _begin(self, partition: str) -> MemoryTransaction:
        past = self._stale_table if self._weakness else None
        return MemoryTransaction(
            self._tables, self._uniques, partition, past=past, limits=self._scan_limit
        )

    def _attempt(self, partition: str, work: Callable[[Transaction], T]) -> T:
        """Run the work and apply it, all under the lock."""
        self._require_open()
        tx = self._begin(partition)
        result = work(tx)
        tx.raise_failure()
        self._apply(partition, tx)
        return result

    def _weak_attempt(
        self, partition: str, work: Callable[[Transaction], T], weakness: Weakness
    ) -> T:
        """Run the work without a lock; at the end verify everything that it may rely on.

        Raises Rerun if that has changed, and sometimes without a reason.
        """
        with self._lock:
            self._require_open()
            if self._should_occur(weakness.unavailable):
                raise StorageUnavailable("simulated by the weak mode")
            tx = self._begin(partition)
        try:
            result = work(tx)
            tx.raise_failure()
        except Exception:
            with self._lock:
                tx.verify()
            raise
        if threading.active_count() > 1:
            time.sleep(0)  # let another thread run between the work and its commit
        with self._lock:
            self._require_open()
            tx.verify()
            if self._should_occur(weakness.rerun):
                raise RerunRequired
            lost = bool(tx.writes) and self._should_occur(weakness.lost_commit)
            if lost and self._should_occur(0.5):
                raise CommitUnknown("the answer to COMMIT was lost, and so was the commit")
            self._apply(partition, tx)
        if lost:
            raise CommitUnknown("the answer to COMMIT was lost")
        return result

    def _apply(self, partition: str, tx: MemoryTransaction) -> None:
        """Publish the writes of a transaction."""
        if tx.writes:
            self._copies.pop(partition, None)
        for collection, id in tx.writes:  # all keys are released before any is taken
            replaced = self._tables[partition, collection].get(id)
            if self._weakness:
                self._keep_for_stale_reads(partition, collection, id, replaced)
            for unique in replaced.uniques if replaced else ():
                del self._uniques[unique]
        for (collection, id), row in tx.writes.items():
            table = self._tables[partition, collection]
            if row is None:
                table.pop(id, None)
            else:
                table[id] = row
                self._uniques.update(dict.fromkeys(row.uniques, id))

    def _keep_for_stale_reads(
        self, partition: str, collection: str, id: str, row: StoredRow | None
    ) -> None:
        """Keep a row for stale reads before it changes."""
        self._recent = [*self._recent[1 - RECENT_WRITES :], (partition, collection, id, row)]

    def _lease(self, partition: str, row: StoredRow, until: Instant, holder: str) -> ClaimedJob:
        leased = lease(row.read(Job), until, holder)
        self._store_job(partition, leased)
        return ClaimedJob(partition, leased)

    def _store_job(self, partition: str, job: Job) -> None:
        name = Job.collection.name
        self._copies.pop(partition, None)
        table = self._tables[partition, name]
        if self._weakness:
            self._keep_for_stale_reads(partition, name, job.id, table.get(job.id))
        table[job.id] = to_stored_row(partition, job)

    def _iter_jobs(self, queue: str) -> Iterator[tuple[str, StoredRow]]:
        for (partition, _), row in self._iter_rows(Job.collection.name):
            if row.columns["queue"] == queue:
                yield partition, row

    def _iter_rows(self, collection: str) -> Iterator[tuple[PrimaryKey, StoredRow]]:
        """The rows of a collection in every partition."""
        found = [(place[0], rows) for place, rows in self._tables.items() if place[1] == collection]
        for partition, rows in found:
            for id, row in rows.items():
                yield (partition, id), row

    # Weakness.

    def _should_occur(self, share: float) -> bool:
        with self._lock:
            return self._random.random() < share

    def _scan_limit(self) -> int:
        """How many rows a page with comparisons reads; the port sets only the maximum."""
        if self._weakness and self._should_occur(self._weakness.short_page):
            return self._random.randint(1, 5)
        return SCAN_LIMIT

    def _stale_table(self, partition: str, collection: str, what: ReadMethod) -> Table:
        """A table as it was some writes ago, or now; perhaps in the middle of a transaction."""
        with self._lock:
            rows = dict(self._tables[partition, collection])
            weakness = self._weakness
            assert weakness is not None
            if self._should_occur(weakness.stale_get if what == "get" else weakness.stale_find):
                ago = self._random.randint(1, RECENT_WRITES)
                for *place, id, before in reversed(self._recent[-ago:]):
                    if place == [partition, collection]:
                        rows.pop(id, None)
                        if before is not None:
                            rows[id] = before
            return rows


def open_url(url: str, record_types: RecordTypes, waits: Waits = NO_WAITS) -> MemoryStorage:
    """`memory:`, or `memory:weak` and `memory:weak?seed=7` for the weak mode.

    It learns the kinds of records as they come, so it does not need the list, and waits for
    nothing.
    """
    rest = url.removeprefix("memory:").lstrip("/")
    if not rest:
        return MemoryStorage()
    mode, _, query = rest.partition("?")
    if mode != "weak" or not (query == "" or query.startswith("seed=")):
        raise ValueError("expected memory:, memory:weak or memory:weak?seed=N")
    return MemoryStorage(Weakness(seed=int(query.removeprefix("seed=") or 0)))
