"""The leases of a process: renewed while its jobs run, and lost by a hanging job.

A lease is short, so that the work of a dead process continues elsewhere within seconds. A
living process renews it for as long as the job may take (`Queue.run_limit_ms`); after that another
worker may have the job. A renewed lease proves no more than before: the version of
the claim decides which outcome counts.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterable

import attrs

from payments_core.clock import SECOND, Clock, Instant
from payments_core.engine.jobs.parking import Queue, describe_error
from payments_core.storage.port import ClaimedJob, Storage, StorageError

CHECKS_PER_LEASE = 5
RENEW_BELOW = 0.7
"""A lease is renewed when less than this share is left, so it outlives two failed renewals."""

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
        """`refresh` is called before the clock is read."""
        self._storage = storage
        self._clock = clock
        self._refresh = refresh
        self._lock = threading.Lock()
        self._held: dict[_Key, _HeldLease] = {}
        self._hung: set[_Key] = set()
        self.holder = ""
        """The name under which jobs are claimed; if there is one, it outlives the process."""

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
                elif held.lease_until - now < RENEW_BELOW * held.queue.lease_ms:
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


def _key_of(claimed: ClaimedJob) -> _Key:
    return claimed.partition, claimed.job.id, claimed.job.version
