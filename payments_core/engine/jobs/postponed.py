"""Jobs that are due later than any right clock can have written: they are due now.

A process that started with a clock hours ahead, or whose clock was believed after a while, commits
jobs that are due hours from now; when the clock is right again, transfers, looks at chains and
deliveries would wait for as long. Nothing else shows that a job waits in vain. A storage with a
clock of its own lets no such process write, so its jobs are searched only when this process's
clock steps back.
"""

from __future__ import annotations

import logging
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

import attrs

from payments_core.clock import MAX_CLOCK_SKEW_MS, SECOND, HasServerTime, Instant
from payments_core.engine.jobs.parking import MAX_BACK_OFF_MS, describe_error
from payments_core.errors import Unavailable
from payments_core.evolve import evolve
from payments_core.storage.damaged_records import try_decode
from payments_core.storage.jobs import NEVER, Job
from payments_core.storage.maintenance import BATCH, MaintenanceAccess, PrimaryKey
from payments_core.storage.port import Storage, StorageError, Transaction

_log = logging.getLogger(__name__)


@attrs.frozen
class LongestDelays:
    """How far ahead a right clock may write that a job of a kind is due: at first, and later. A
    failed job of a queue that it does not block waits for the default at most."""

    first_ms: int = MAX_BACK_OFF_MS
    later_ms: int = MAX_BACK_OFF_MS


class PostponedJobs:
    """Finds such jobs of one mode: before the first claim, and when the clock has stepped back."""

    def __init__(
        self,
        storage: Storage,
        mode: str,
        longest_delays: Mapping[str, LongestDelays],
        read_clock: Callable[[], Instant],
        catch_up: Callable[[], None] = lambda: None,
    ) -> None:
        """`longest_delays` are by kind. Jobs of other kinds are left: they wait for an instant that
        somebody was told, such as the expiry of a Payment. `catch_up` is called before a search: a
        sandbox's clock may continue where it was."""
        self._storage = storage
        self._mode = mode
        self._read_clock = read_clock
        self._catch_up = catch_up
        self._longest_delays = longest_delays
        self._lock = threading.Lock()
        self._latest: Instant | None = None if self._may_start_wrong() else 0

    def _may_start_wrong(self) -> bool:
        return bool(self._longest_delays) and not isinstance(self._storage, HasServerTime)

    def look(self, now: Instant) -> None:
        """Make such jobs due, if it is time to search. Failures are logged, and tried again."""
        if not self._is_time(now) or not self._lock.acquire(blocking=False):
            return
        try:
            self._catch_up()
            now = max(now, self._read_clock())
            self._search(now)
            self._latest = now
        except (StorageError, Unavailable) as error:
            _log.warning("cannot look for postponed jobs: %s", describe_error(error))
        finally:
            self._lock.release()

    def _is_time(self, now: Instant) -> bool:
        latest = self._latest
        if latest is None or now < latest - MAX_CLOCK_SKEW_MS:
            return True
        self._latest = max(latest, now)
        return False

    def _search(self, now: Instant) -> None:
        found = list(self._find(now))
        # Others may have written these while this process paused, or moved the sandbox's clock.
        latest = max(now, self._read_clock()) if found else now
        by_partition: dict[str, list[Job]] = defaultdict(list)
        for partition, job in found:
            if self._is_postponed(job, latest):
                by_partition[partition].append(job)
        for partition, jobs in by_partition.items():
            work = partial(_make_due, jobs=jobs, now=latest)
            if count := self._storage.transact(partition, work):
                ahead_s = (max(job.due_at for job in jobs) - latest) // SECOND
                _log.warning(
                    "%d jobs of %s are due now: a clock that was ahead had postponed them by up to "
                    "%d s, such as a job of kind %s",
                    count, partition, ahead_s, jobs[0].kind,
                )  # fmt: skip

    def _find(self, now: Instant) -> Iterator[tuple[str, Job]]:
        if not isinstance(self._storage, MaintenanceAccess):
            return
        columns = tuple(Job.collection.columns)
        queue_at, due_at, lease_at = map(columns.index, ("queue", "due_at", "lease_until"))
        earliest = now + MAX_BACK_OFF_MS
        after: PrimaryKey | None = None
        while rows := self._storage.read_rows(Job, after=after, limit=BATCH):
            for row in rows:
                due, lease, queue = (row.columns[at] for at in (due_at, lease_at, queue_at))
                assert isinstance(due, int)
                assert isinstance(lease, int)
                if not earliest < due < NEVER or lease > now:
                    continue  # it is due soon, parked or running
                if not str(queue).startswith(f"{self._mode}."):
                    continue
                job = try_decode(Job, row.body)
                if job is not None and self._is_postponed(job, now):
                    yield row.partition, job
            after = rows[-1].primary_key

    def _is_postponed(self, job: Job, now: Instant) -> bool:
        longest = self._longest_delays.get(job.kind)
        if longest is None:
            return False
        longest_ms = longest.first_ms if job.version == 1 else longest.later_ms
        return now + longest_ms + MAX_CLOCK_SKEW_MS < job.due_at


def _make_due(tx: Transaction, jobs: Sequence[Job], now: Instant) -> int:
    """Make the jobs due unless they changed."""
    stored = tx.get_many(Job, [job.id for job in jobs], for_update=True)
    unchanged = [job for job in jobs if stored.get(job.id) == job]
    tx.write((), [evolve(job, due_at=now) for job in unchanged])
    return len(unchanged)
