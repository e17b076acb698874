"""The jobs that a dispatcher holds: claimed, leased, and each with its newest claim."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from payments_core.engine.jobs.leases import LeaseKeeper
from payments_core.engine.jobs.parking import ParkingPolicy, Queue
from payments_core.engine.jobs.suspects import (
    ALONE_PAUSE_MS,
    find_suspects_to_wait,
    is_suspect,
)
from payments_core.storage.port import ClaimedJob


class JobsInHand:
    """The jobs of one process. Only the coordinator uses it."""

    def __init__(self, parking: ParkingPolicy, leases: LeaseKeeper, mode: str) -> None:
        self._parking = parking
        self._leases = leases
        self._mode = mode
        self._newest: dict[str, ClaimedJob] = {}

    def claim(
        self, queue: Queue, limit: int, lane_concurrency: int, lane_overrides: Mapping[str, int]
    ) -> Mapping[str, Sequence[ClaimedJob]]:
        """Claim jobs of the queue that may be run; they are returned by partition.

        A held job may be claimed again: its lease ended meanwhile. Of the suspects, which may
        have ended their process, as an event handler can, at most the least suspect is claimed.
        """
        claimed = self._leases.claim(queue, self._mode, limit, lane_concurrency, lane_overrides)
        runnable = [item for item in claimed if self._parking.should_run(queue, item)]
        by_partition: dict[str, list[ClaimedJob]] = defaultdict(list)
        for item in self._leave_out_suspects(queue, runnable):
            by_partition[item.partition].append(item)
            self._leases.add(queue, [item])
        return by_partition

    def _leave_out_suspects(
        self, queue: Queue, claimed: Sequence[ClaimedJob]
    ) -> Sequence[ClaimedJob]:
        """The jobs without those that must wait until another suspect has ended."""
        waiting = find_suspects_to_wait(
            [item for item in claimed if item.job.id not in self._newest],
            is_one_running=any(map(is_suspect, self._newest.values())),
        )
        if not waiting:
            return claimed
        self._parking.postpone(queue, waiting, ALONE_PAUSE_MS)
        left_out = {item.job.id for item in waiting}
        return [item for item in claimed if item.job.id not in left_out]

    def keep(self, claimed: Iterable[ClaimedJob]) -> list[ClaimedJob]:
        """Hold these jobs under their new claims; return those that were not held before."""
        fresh = []
        for item in claimed:
            before = self._newest.get(item.job.id)
            if before is None:
                fresh.append(item)
            else:
                self._leases.remove([before])
            self._newest[item.job.id] = item
        return fresh

    def newest(self, claimed: ClaimedJob) -> ClaimedJob:
        """The newest claim of a job."""
        return self._newest.get(claimed.job.id, claimed)

    def drop(self, claimed: Iterable[ClaimedJob]) -> list[ClaimedJob]:
        """Stop holding these jobs; return their newest claims, which are no longer renewed."""
        newest = [self._newest.pop(item.job.id, item) for item in claimed]
        self._leases.remove(newest)
        return newest
