"""Claiming jobs and running them, in the caller's thread.

A job is run by its kind's handler. Those of a kind that has a batch handler, and of one partition,
are run together; if that fails, each is run separately, so that one cannot fail the others.
"""

from __future__ import annotations

import threading
from collections import ChainMap
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from payments_core.clock import Clock, Instant
from payments_core.engine.jobs.hung_threads import HungThreads
from payments_core.engine.jobs.leases import LeaseKeeper
from payments_core.engine.jobs.parking import ParkingPolicy, Queue
from payments_core.engine.jobs.suspects import (
    ALONE_PAUSE_MS,
    find_suspects_to_wait,
    is_suspect,
)
from payments_core.storage.port import ClaimedJob, Storage
from payments_core.telemetry import Telemetry

Handler = Callable[[ClaimedJob], int | None]
"""Does a job and commits its outcome; an error counts as no outcome. While it has the only lease of
a lane, it may also do jobs behind its own, and then returns how many it did."""

BatchHandler = Callable[[Sequence[ClaimedJob]], object]
"""Does jobs of one kind and partition together, and commits an outcome for each. If it raises,
each is done separately; those already committed are not done again."""

LookBack = Callable[[Instant], None]
"""Called with the time before jobs are claimed: work of a clock that was ahead is made due."""


def do_not_look_back(now: Instant) -> None:
    """For workers without such work."""


class JobExecutor:
    """The handlers of one mode's jobs, and the leases of the running jobs."""

    def __init__(
        self,
        storage: Storage,
        clock: Clock,
        mode: str,
        handlers: Mapping[str, Handler],
        batch_handlers: Mapping[str, BatchHandler],
        refresh: Callable[[], None],
        telemetry: Telemetry,
        look_back: LookBack = do_not_look_back,
    ) -> None:
        """`refresh` is called before the clock is read; `look_back` before each claim."""
        self._mode = mode
        self._clock = clock
        self.look_back: LookBack = look_back
        self.handlers: Mapping[str, Handler] = dict(handlers)
        self.batch_handlers: Mapping[str, BatchHandler] = dict(batch_handlers)
        self._refresh = refresh
        kinds = ChainMap[str, Any](self.handlers, self.batch_handlers)
        self.parking: ParkingPolicy = ParkingPolicy(storage, clock, kinds, telemetry, refresh)
        self.leases: LeaseKeeper = LeaseKeeper(storage, clock, refresh)
        self.hung: HungThreads = HungThreads(self.leases)
        self._claiming = threading.Lock()

    def claim(self, queue: Queue, now: Instant | None, limit: int) -> Sequence[ClaimedJob]:
        """Lease due jobs of a queue; `now` is by default the clock's.

        At most one suspect (`suspects.py`) is claimed, and only while no other suspect runs.
        A job that hangs in this process is left to others: it would take every thread here.
        """
        self._refresh()
        self.look_back(self._clock.now() if now is None else now)
        claimed = self.leases.claim(queue, self._mode, limit, queue.lane_concurrency, now=now)
        hung = [item for item in claimed if self.leases.is_hung(item)]
        claimed = [item for item in claimed if item not in hung]
        with self._claiming:
            is_one_running = self.leases.has(is_suspect)
            waiting = find_suspects_to_wait(claimed, is_one_running=is_one_running)
            claimed = [item for item in claimed if item not in waiting]
            self.leases.add(queue, claimed)
        self.parking.postpone(queue, hung, queue.lease_ms)
        if is_one_running:
            self.parking.postpone(queue, waiting, ALONE_PAUSE_MS)
        else:  # they are the next ones, when that one has ended
            self.parking.release_unstarted(waiting)
        return claimed

    def split_together(
        self, claimed: Sequence[ClaimedJob]
    ) -> tuple[Sequence[ClaimedJob], Sequence[ClaimedJob]]:
        """The first of some jobs with the jobs that are run together with it, and the others."""
        if not claimed or claimed[0].job.kind not in self.batch_handlers:
            return claimed[:1], claimed[1:]
        alike = (claimed[0].partition, claimed[0].job.kind)
        together = [item for item in claimed if (item.partition, item.job.kind) == alike]
        others = [item for item in claimed if (item.partition, item.job.kind) != alike]
        return together, others

    def run(self, queue: Queue, claimed: Sequence[ClaimedJob]) -> int:
        """Run a job, or a batch; return how many were run. Errors of the jobs are not raised."""
        try:
            runnable = [item for item in claimed if self.parking.should_run(queue, item)]
            with self.hung.observe(queue, runnable):
                done = self._handle(queue, runnable) if runnable else None
            return max(len(claimed), done or 0)
        finally:
            self.leases.remove(claimed)

    def _handle(self, queue: Queue, claimed: Sequence[ClaimedJob]) -> int | None:
        kind = claimed[0].job.kind
        try:
            with self.parking.telemetry.observe_job(queue.name, kind, len(claimed)):
                if kind not in self.batch_handlers:
                    return self.handlers[kind](claimed[0])
                self.batch_handlers[kind](claimed)
        except Exception as error:
            if len(claimed) == 1:
                self.parking.record_failure(queue, claimed[0], error)
            else:
                for item in claimed:
                    self._handle(queue, [item])
        return None
