"""The meaning of `claim` in plain Python, over column values.

Adapters without their own query language can use it as it is.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol, TypeVar

from payments_core.clock import Instant
from payments_core.evolve import evolve
from payments_core.storage.documents import stamp
from payments_core.storage.jobs import NEVER, Job
from payments_core.storage.port import NO_LANE_OVERRIDES
from payments_core.storage.query_semantics import Columns, interleave


class JobRow(Protocol):
    """A stored job, at least its id and its columns."""

    @property
    def id(self) -> str:
        """The job's id."""

    @property
    def columns(self) -> Columns:
        """The columns that `Job` declares."""


J = TypeVar("J", bound=JobRow)


class ClaimRings:
    """The turns of partitions and lanes at a handle's claims, called under a lock."""

    def __init__(self) -> None:
        self.turns: dict[str, str] = {}
        """The partition that was last claimed from, by queue."""
        self.lanes: dict[tuple[str, str], str] = {}
        """The lane that was last claimed from, by queue and partition."""

    def choose(
        self,
        queue: str,
        jobs: Iterable[tuple[str, J]],
        now: Instant,
        limit: int,
        lane_concurrency: int,
        lane_overrides: Mapping[str, int] = NO_LANE_OVERRIDES,
    ) -> list[tuple[str, J]]:
        """The jobs to lease, each with its partition, in order; the rings advance.

        `jobs` are the queue's jobs that count (`counts_for_claim`), or all of its jobs.
        """

        def slots_of(lane: str) -> int:
            return lane_overrides.get(lane, lane_concurrency)

        partitions: dict[str, list[J]] = defaultdict(list)
        for partition, row in jobs:
            partitions[partition].append(row)
        last = self.turns.get(queue, "")
        chosen: list[tuple[str, J]] = []
        for partition in sorted(partitions, key=lambda name: (name <= last, name)):
            place = queue, partition
            offered = _offer(partitions[partition], now, self.lanes.get(place, ""), slots_of)
            given = interleave(offered, limit - len(chosen))
            if given:
                self.turns[queue], self.lanes[place] = partition, str(given[-1].columns["lane"])
            chosen += [(partition, row) for row in given]
        return chosen


def _offer(
    rows: Sequence[J], now: Instant, last: str, slots_of: Callable[[str], int]
) -> list[list[J]]:
    """The claimable jobs of each lane of a partition, starting after `last` in the ring."""
    lanes: dict[str, list[J]] = defaultdict(list)
    for row in rows:
        lanes[str(row.columns["lane"])].append(row)
    offered: list[list[J]] = []
    for lane in sorted(lanes, key=lambda lane: (lane <= last, lane)):
        live = sum(_int_column(row, "lease_until") > now for row in lanes[lane])
        room = max(0, slots_of(lane) - live)
        ready = sorted((row for row in lanes[lane] if ready_at(row) <= now), key=_order_in_lane)
        offered.append(ready[:room])
    return offered


def counts_for_claim(row: JobRow, now: Instant) -> bool:
    """Whether a claim considers the job: it is due, or occupies a slot of its lane."""
    return _int_column(row, "due_at") <= now or _int_column(row, "lease_until") > now


def ready_at(row: JobRow) -> Instant:
    """The instant at which a job can be claimed, regardless of its lane."""
    return max(_int_column(row, "due_at"), _int_column(row, "lease_until"))


def free(job: Job) -> Job:
    """The job without its lease."""
    return evolve(job, lease_until=0, holder="")


def lease(job: Job, until: Instant, holder: str) -> Job:
    """The job as a claim stores it."""
    leased = evolve(job, claims=job.claims + 1, lease_until=until, holder=holder)
    return stamp(leased, job.version + 1)


def is_leased_by(holder: str, job: Job, now: Instant) -> bool:
    """Whether `end_leases` frees the job: it is neither free already nor parked."""
    return job.holder == holder and now < job.lease_until < NEVER


def choose_latest_leases(
    jobs: Iterable[tuple[str, J]], after: Instant, limit: int
) -> list[tuple[str, J]]:
    """The jobs of a queue that `find_leases` returns, each with its partition."""
    leased = [item for item in jobs if after < _int_column(item[1], "lease_until") < NEVER]
    leased.sort(key=lambda item: (-_int_column(item[1], "lease_until"), item[0], item[1].id))
    return leased[:limit]


def _int_column(row: JobRow, column: str) -> int:
    value = row.columns[column]
    assert isinstance(value, int)
    return value


def _order_in_lane(row: JobRow) -> tuple[int, int, str]:
    return _int_column(row, "due_at"), _int_column(row, "ordinal"), row.id
