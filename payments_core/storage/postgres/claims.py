"""Claiming jobs in PostgreSQL: which lanes have due work, and the leases.

A row for each queue says where its ring of lanes stands. Claims lock it, so that two never count
a lane's slots at once; looking for work does not. A claim waits three times for the server: for a
look at some dozens of lanes, for the jobs of those with room, and for the leases with COMMIT.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import attrs

from payments_core.clock import Instant
from payments_core.storage import documents
from payments_core.storage.damaged_records import log_damaged_jobs, try_decode
from payments_core.storage.jobs import NEVER, Job
from payments_core.storage.port import ClaimedJob
from payments_core.storage.postgres.pending_transaction import PendingTransaction
from payments_core.storage.postgres.pipeline import ResultRow
from payments_core.storage.postgres.transaction import statements_of

RING_TABLE = "storage_rings"
READY = "GREATEST(due_at, lease_until)"
BUCKET_BITS = 20
BUCKET = f"{READY} >> {BUCKET_BITS}"
"""When a job can be claimed, in steps of 17 minutes; a claim finds the due lanes by these."""

SPARE_LANES = 32
"""So many more lanes than jobs are looked at, since some will have no room."""
MAX_LANES = 160
MAX_EMPTY_CLAIMS = 4
"""Lanes that were seen to have work may be another claim's by now: so often others are tried."""

# The index of the buckets is walked from bucket to bucket and in each from lane to lane, since
# PostgreSQL 15 would read all of its rows to find the few distinct ones. A row is compared and
# ordered by bucket and lane together: by the lane alone, the planner may take another index.
_NEXT_LANE = f"""
    SELECT {BUCKET} AS bucket, lane FROM jobs
    WHERE queue = $1 AND ({BUCKET}, lane) > {{}} ORDER BY {BUCKET}, lane LIMIT 1
"""
_LANES = f"""
    SELECT DISTINCT found.lane FROM buckets CROSS JOIN LATERAL (
        WITH RECURSIVE lanes (bucket, lane) AS (
            ({_NEXT_LANE.format("(buckets.bucket, {after})")})
            UNION ALL
            SELECT next.* FROM lanes CROSS JOIN LATERAL (
                {_NEXT_LANE.format("(lanes.bucket, lanes.lane)")}
            ) AS next WHERE lanes.bucket = buckets.bucket
        )
        SELECT lane FROM lanes WHERE lanes.bucket = buckets.bucket LIMIT $4
    ) AS found
    ORDER BY lane LIMIT $4
"""
_AFTER = f"COALESCE($3::text, (SELECT lane FROM {RING_TABLE} WHERE queue = $1), '')"
_FIND_LANES = f"""
    WITH RECURSIVE steps (bucket) AS (
        (SELECT {BUCKET} FROM jobs WHERE queue = $1 ORDER BY {BUCKET} LIMIT 1)
        UNION ALL
        SELECT (
            SELECT {BUCKET} FROM jobs WHERE queue = $1 AND ({BUCKET}) > steps.bucket
            ORDER BY {BUCKET} LIMIT 1
        ) FROM steps WHERE steps.bucket < $2::bigint >> {BUCKET_BITS}
    ),
    buckets AS MATERIALIZED (
        SELECT bucket FROM steps WHERE bucket <= $2::bigint >> {BUCKET_BITS}
    )
    SELECT lane, turn, (
        SELECT count(*) FROM jobs
        WHERE jobs.queue = $1 AND jobs.lane = ahead.lane AND jobs.lease_until > $2::bigint
    ) FROM (
        (SELECT lane, 0 AS turn FROM ({_LANES.format(after=_AFTER)}) AS behind)
        UNION ALL
        (SELECT lane, 1 AS turn FROM ({_LANES.format(after="''")}) AS again WHERE lane <= {_AFTER})
        LIMIT $4
    ) AS ahead
"""

# The rows chosen are looked at again once they are locked. `|| ''` keeps the planner from reading
# a whole queue's index for each of them.
_DUE = "due_at <= $4::bigint AND lease_until <= $4::bigint"
_SELECT_DUE = f"""
    WITH chosen AS MATERIALIZED (
        SELECT due.partition, due.id, lanes.turn, due.place
        FROM unnest($2::text[], $3::bigint[]) WITH ORDINALITY AS lanes (lane, slots, turn)
        CROSS JOIN LATERAL (
            SELECT count(*) AS live FROM jobs
            WHERE jobs.queue = $1 AND jobs.lane = lanes.lane AND jobs.lease_until > $4::bigint
        ) AS leased
        CROSS JOIN LATERAL (
            SELECT partition, id, row_number() OVER (ORDER BY due_at, ordinal, id) AS place
            FROM (
                SELECT partition, id, due_at, ordinal FROM jobs
                WHERE jobs.queue = $1 AND jobs.lane = lanes.lane AND {_DUE}
                ORDER BY due_at, ordinal, id
                LIMIT GREATEST(LEAST(lanes.slots - leased.live, $5), 0)
            ) AS first
        ) AS due
        ORDER BY due.place, lanes.turn LIMIT $5
    )
    SELECT jobs.partition, jobs.id, jobs.body, chosen.turn, chosen.place
    FROM chosen JOIN jobs ON jobs.partition = chosen.partition AND jobs.id = chosen.id
    WHERE jobs.queue || '' = $1 AND {_DUE}
    FOR UPDATE OF jobs SKIP LOCKED
"""

_MAKE_RING = f"INSERT INTO {RING_TABLE} VALUES ($1, '') ON CONFLICT DO NOTHING"
_LOCK_RING = f"SELECT lane FROM {RING_TABLE} WHERE queue = $1 FOR UPDATE"
_ADVANCE_RING = f"UPDATE {RING_TABLE} SET lane = $2 WHERE queue = $1"
_SET_ASIDE = "UPDATE jobs SET lease_until = $3 WHERE partition = $1 AND id = $2"


@attrs.frozen
class ClaimRequest:
    """What a claim asks for."""

    queue: str
    now: Instant
    lease_ms: int
    limit: int
    lane_concurrency: int
    lane_overrides: Mapping[str, int]
    holder: str

    @property
    def lane_batch(self) -> int:
        """How many lanes are looked at together."""
        return min(self.limit + SPARE_LANES, MAX_LANES)

    def concurrency_of(self, lane: str) -> int:
        """How many jobs of the lane may be leased at once."""
        return self.lane_overrides.get(lane, self.lane_concurrency)


@attrs.frozen
class LanePage:
    """Lanes with work, in ring order. `lanes` are those with room; `last` is None at the end."""

    lanes: Sequence[str]
    scanned: Sequence[str]
    last: str | None


@attrs.frozen
class ClaimResult:
    """What a claim leased, and the jobs that it set aside since they cannot be read."""

    claimed: Sequence[ClaimedJob]
    unreadable: Sequence[tuple[str, str]]


RunInTransaction = Callable[[Callable[[PendingTransaction], Any]], Any]
"""Runs something in a transaction."""


def claim(
    look_in: RunInTransaction, write_in: RunInTransaction, request: ClaimRequest
) -> Sequence[ClaimedJob]:
    """Lease jobs of the first lanes in the ring that have work and room."""
    last: str | None = None
    seen: set[str] = set()
    empty_claims = 0
    most = request.lane_batch
    while empty_claims < MAX_EMPTY_CLAIMS:
        ahead: LanePage = look_in(partial(find_ready_lanes, request=request, last=last, most=most))
        if ahead.lanes:
            taken: ClaimResult = write_in(partial(lease_jobs, request=request, ahead=ahead))
            log_damaged_jobs(taken.unreadable)
            if taken.claimed:
                return taken.claimed
            if taken.unreadable:  # there may be others behind them
                continue
            empty_claims += 1
        else:
            most = MAX_LANES
        if ahead.last is None or seen.issuperset(ahead.scanned):
            break
        seen.update(ahead.scanned)
        last = ahead.last
    return ()


def next_due(transaction: PendingTransaction, queue: str, after: Instant | None) -> Instant | None:
    """The earliest instant at which a job of the queue can be claimed, later than `after`."""
    later = "" if after is None else f"AND {READY} > $2"
    sql = f"SELECT {READY} FROM jobs WHERE queue = $1 {later} ORDER BY {READY} LIMIT 1"
    rows = transaction.query(sql, (queue,) if after is None else (queue, after))
    return int(rows[0][0] or 0) if rows else None


def find_ready_lanes(
    transaction: PendingTransaction, request: ClaimRequest, last: str | None, most: int
) -> LanePage:
    """Lanes with due jobs, in ring order after `last`, or from where the ring stands."""
    rows = transaction.query(_FIND_LANES, (request.queue, request.now, last, most))
    found = sorted(
        (int(turn or 0), _decode_text(lane), int(live or 0)) for lane, turn, live in rows
    )
    names = [lane for _, lane, _ in found]
    lanes = [lane for _, lane, live in found if request.concurrency_of(lane) > live]
    return LanePage(lanes, names, names[-1] if len(names) == most else None)


def lease_jobs(
    transaction: PendingTransaction, request: ClaimRequest, ahead: LanePage
) -> ClaimResult:
    """Lease jobs of those lanes in turn, in a transaction that the caller commits."""
    transaction.enqueue(_MAKE_RING, (request.queue,))
    transaction.enqueue(_LOCK_RING, (request.queue,))
    lane_concurrency = [request.concurrency_of(lane) for lane in ahead.lanes]
    rows = transaction.query(
        _SELECT_DUE, (request.queue, ahead.lanes, lane_concurrency, request.now, request.limit)
    )
    claimed: list[ClaimedJob] = []
    unreadable: list[tuple[str, str]] = []
    for partition, id, body in _order_jobs(rows):
        job = try_decode(Job, body)
        if job is None:
            unreadable.append((partition, id))
            transaction.enqueue(_SET_ASIDE, (partition, id, NEVER))
            continue
        claimed.append(_lease_job(transaction, request, partition, job))
    if claimed:
        transaction.enqueue(_ADVANCE_RING, (request.queue, _next_ring_position(claimed, ahead)))
    return ClaimResult(claimed, unreadable)


def _order_jobs(rows: Sequence[ResultRow]) -> list[tuple[str, str, bytes]]:
    """The jobs in turn; of a lane those before the first that another transaction has locked."""
    found = sorted((int(place or 0), int(turn or 0), row) for *row, turn, place in rows)
    taken: dict[int, int] = {}
    jobs = []
    for place, turn, (partition, id, body) in found:
        if place == taken.get(turn, 0) + 1:
            taken[turn] = place
            jobs.append((_decode_text(partition), _decode_text(id), body or b""))
    return jobs


def _lease_job(
    transaction: PendingTransaction, request: ClaimRequest, partition: str, job: Job
) -> ClaimedJob:
    until = request.now + request.lease_ms
    leased = attrs.evolve(job, claims=job.claims + 1, lease_until=until, holder=request.holder)
    stored = documents.stamp(leased, job.version + 1)
    columns = Job.collection.values(stored)
    sql = statements_of(Job.collection).update
    body = documents.encode(stored)
    transaction.enqueue(sql, (partition, job.id, stored.version, *columns, body))
    return ClaimedJob(partition, stored)


def _next_ring_position(claimed: Sequence[ClaimedJob], ahead: LanePage) -> str:
    """The lane after which the next claim goes on round the ring."""
    if ahead.last is None:  # these are all there are, and the turn goes on among them
        return claimed[-1].job.lane
    return list(dict.fromkeys(item.job.lane for item in claimed))[-1]


def _decode_text(value: bytes | None) -> str:
    return (value or b"").decode()
