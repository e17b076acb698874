"""The leases of a process: renewed while its jobs run, and lost by a hanging job.

A lease is short, so that the work of a dead process continues elsewhere within seconds. A
living process renews it for as long as the job may take (`Queue.run_limit_ms`); after that another
worker may have the job. A renewed lease proves no more than before: the version of
the claim decides which outcome counts.

A lease that ends later than any right clock can have written has ended: a machine whose clock was
hours ahead wrote it, and its lane would stand still for as long.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

import attrs

from payments_core.clock import MAX_CLOCK_SKEW_MS, SECOND, Clock, Instant
from payments_core.engine.jobs.parking import Queue, describe_error, longest_wait_ms
from payments_core.evolve import evolve
from payments_core.storage.claim_semantics import free
from payments_core.storage.jobs import NEVER, Job
from payments_core.storage.port import (
    NO_LANE_OVERRIDES,
    ClaimedJob,
    Storage,
    StorageError,
    Transaction,
)

CHECKS_PER_LEASE = 5
RENEW_BELOW = 0.7
"""A lease is renewed when less than this share is left, so it outlives two failed renewals."""

LOOK_AHEAD_S = 10.0
"""How often each queue is searched for leases that end impossibly late."""

_log = logging.getLogger(__name__)

_Key = tuple[str, str, int]


@attrs.define
class _HeldLease:
    claimed: ClaimedJob
    queue: Queue
    lease_until: Instant
    give_up_at: float
    """By the monotonic clock: a sandbox's clock may be moved."""


class LeaseKeeper:
    """The leases of one process and mode."""

    def __init__(
        self, storage: Storage, clock: Clock, refresh: Callable[[], None] = lambda: None
    ) -> None:
        """`refresh` is called before the clock is read, which raises StorageUnavailable while this
        machine's clock is wrong."""
        self._storage = storage
        self._clock = clock
        self._refresh = refresh
        self._lock = threading.Lock()
        self._held: dict[_Key, _HeldLease] = {}
        self._hung: set[_Key] = set()
        self._looked: dict[str, tuple[float, Instant]] = {}
        """When each queue was last searched, by the monotonic and by the other clock."""
        self.holder = ""
        """The name under which jobs are claimed; if there is one, it outlives the process."""

    def claim(
        self,
        queue: Queue,
        mode: str,
        limit: int,
        lane_concurrency: int,
        lane_overrides: Mapping[str, int] = NO_LANE_OVERRIDES,
        now: Instant | None = None,
    ) -> Sequence[ClaimedJob]:
        """Lease due jobs of a queue; `now` is by default the clock's. Raises as `Storage.claim`."""
        if now is None:
            now = self._clock.now()
        self.end_impossible(queue, mode, now)
        return self._storage.claim(
            queue.full_name(mode),
            now,
            lease_ms=queue.lease_ms,
            limit=limit,
            lane_concurrency=lane_concurrency,
            lane_overrides=lane_overrides,
            holder=self.holder,
        )

    def end_impossible(self, queue: Queue, mode: str, now: Instant) -> None:
        """End the leases of a queue that end later than any right clock can have written.

        The storage is asked every ten seconds, and at once when the clock has stepped back.
        Failures are logged.
        """
        name, now_s = queue.full_name(mode), time.monotonic()
        with self._lock:
            asked_s, asked_at = self._looked.get(name, (-LOOK_AHEAD_S, now))
            if now_s < asked_s + LOOK_AHEAD_S and now >= asked_at - MAX_CLOCK_SKEW_MS:
                self._looked[name] = asked_s, max(asked_at, now)
                return
            self._looked[name] = now_s, now
        try:
            by_partition: dict[str, list[Job]] = defaultdict(list)
            for item in find_impossible(self._storage, queue, mode, now, self._read_again):
                by_partition[item.partition].append(item.job)
            for partition, jobs in by_partition.items():
                if ended := self._storage.transact(partition, partial(_end_in, jobs=jobs, now=now)):
                    _log.warning(
                        "%d leases of %s are ended: a clock that was ahead had written their ends",
                        ended, name,
                    )  # fmt: skip
        except StorageError as error:
            _log.warning("cannot look for late leases of %s: %s", name, describe_error(error))

    def _read_again(self) -> Instant:
        self._refresh()
        return self._clock.now()

    def add(self, queue: Queue, claimed: Iterable[ClaimedJob]) -> None:
        """Keep the leases of jobs that were just claimed."""
        give_up_at = time.monotonic() + queue.run_limit_ms / SECOND
        with self._lock:
            for item in claimed:
                until = item.job.lease_until
                self._held[_key_of(item)] = _HeldLease(item, queue, until, give_up_at)

    def has(self, holds: Callable[[ClaimedJob], bool]) -> bool:
        """Whether one of the running jobs satisfies the predicate."""
        with self._lock:
            return any(holds(held.claimed) for held in self._held.values())

    def is_hung(self, claimed: ClaimedJob) -> bool:
        """Whether a thread of this process still has an earlier claim of the job, which was given
        up because it took too long."""
        partition, id, _ = _key_of(claimed)
        with self._lock:
            return any(key[:2] == (partition, id) for key in self._hung)

    def remove(self, claimed: Iterable[ClaimedJob]) -> None:
        """Remove jobs that have ended, or were released."""
        with self._lock:
            for item in claimed:
                self._held.pop(_key_of(item), None)
                self._hung.discard(_key_of(item))

    def lease_end(self, claimed: ClaimedJob) -> Instant:
        """Until when a claimed job is ours, as far as this process knows."""
        with self._lock:
            held = self._held.get(_key_of(claimed))
        return claimed.job.lease_until if held is None else held.lease_until

    def renew(self) -> None:
        """Renew the leases that would end soon. They end if the storage cannot be reached."""
        self._refresh()
        now = self._clock.now()
        for lease_ms, items in self._choose(now).items():
            try:
                held = self._storage.renew(items, now + lease_ms)
            except StorageError as error:
                _log.warning("cannot renew %d leases: %s", len(items), describe_error(error))
                continue
            self._note(items, held, now + lease_ms)

    def _choose(self, now: Instant) -> dict[int, list[ClaimedJob]]:
        """The jobs to renew, by the length of their leases; jobs that hang too long are given
        up."""
        chosen: dict[int, list[ClaimedJob]] = defaultdict(list)
        monotonic = time.monotonic()
        with self._lock:
            for key, held in list(self._held.items()):
                if monotonic >= held.give_up_at:
                    del self._held[key]
                    self._hung.add(key)
                    job, limit_s = held.claimed.job, held.queue.run_limit_ms / SECOND
                    _log.warning(
                        "job %s (%s of %s) has not ended after %.1f s; another worker may take it",
                        job.id, job.kind, job.subject, limit_s,
                    )  # fmt: skip
                elif (
                    held.lease_until - now < RENEW_BELOW * held.queue.lease_ms
                    or held.lease_until > _latest_end(held.queue, now)
                ):
                    chosen[held.queue.lease_ms].append(held.claimed)
        return chosen

    def _note(
        self, asked: Iterable[ClaimedJob], renewed: Iterable[ClaimedJob], until: Instant
    ) -> None:
        kept = {_key_of(item) for item in renewed}
        with self._lock:
            for item in asked:
                key = _key_of(item)
                if key not in kept:  # it has just ended, or another worker has it
                    self._held.pop(key, None)
                elif key in self._held:
                    self._held[key].lease_until = until


def find_impossible(
    storage: Storage,
    queue: Queue,
    mode: str,
    now: Instant,
    read_again: Callable[[], Instant],
) -> Sequence[ClaimedJob]:
    """Jobs of a queue whose leases end later than any right clock can have written, the latest
    first. Raises StorageUnavailable.

    `read_again` reads the clock after the search. While this process paused, or another moved the
    sandbox's clock, right clocks wrote leases that `now` does not allow.
    """
    found = storage.find_leases(queue.full_name(mode), _latest_end(queue, now))
    if not found:
        return ()
    latest = max(now, read_again())
    return [item for item in found if is_impossible(queue, item.job, latest)]


def is_impossible(queue: Queue, job: Job, now: Instant) -> bool:
    """Whether the job's lease, or its pause after a failure, ends later than the queue allows."""
    allowed_ms = longest_wait_ms(queue, job) + MAX_CLOCK_SKEW_MS
    return now + allowed_ms < job.lease_until < NEVER


def _latest_end(queue: Queue, now: Instant) -> Instant:
    """When a lease ends at the latest that was just written, by any clock that is allowed."""
    return now + queue.lease_ms + MAX_CLOCK_SKEW_MS


def _end_in(tx: Transaction, jobs: Sequence[Job], now: Instant) -> int:
    """Make the jobs due at `now` unless they changed; their holders are fenced."""
    stored = tx.get_many(Job, [job.id for job in jobs], for_update=True)
    ended = [
        evolve(free(found), due_at=min(found.due_at, now))  # also those that it had postponed
        for job in jobs
        if (found := stored.get(job.id))
        and (found.version, found.lease_until) == (job.version, job.lease_until)
    ]
    tx.write((), ended)
    return len(ended)


def _key_of(claimed: ClaimedJob) -> _Key:
    return claimed.partition, claimed.job.id, claimed.job.version
