"""Claiming jobs in SQLite: which lanes have due work, and the leases.

Lanes that may have work are found in a snapshot, without the lock; each is then looked at again
by the writer. So a wrong guess costs a look and never a lease too many.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence

import attrs

from payments_core.clock import Instant
from payments_core.jobs.record import Job
from payments_core.storage import documents
from payments_core.storage.port import Claimed
from payments_core.storage.sqlite_rows import statements_of
from payments_core.storage.sqlite_schema import BUCKET, READY

_BUCKETS = f"FROM jobs INDEXED BY jobs__claim_buckets WHERE queue = :queue AND {BUCKET}"

_NEXT_BUCKET = f"SELECT {BUCKET} {_BUCKETS} > :bucket ORDER BY {BUCKET} LIMIT 1"

# SQLite has no skip scan without statistics, and `min` does not see an expression's index:
# each step asks the index for the next lane.
_NEXT_LANE = f"SELECT lane {_BUCKETS} = :bucket AND lane > {{}} ORDER BY lane LIMIT 1"
_LANES_OF_BUCKET = f"""
    WITH RECURSIVE lanes (lane) AS (
        SELECT * FROM ({_NEXT_LANE.format(":after")})
        UNION ALL
        SELECT ({_NEXT_LANE.format("lanes.lane")}) FROM lanes WHERE lanes.lane IS NOT NULL
        LIMIT :lanes
    )
    SELECT lane FROM lanes WHERE lane IS NOT NULL
"""

_LIVE = """
    SELECT count(*) FROM jobs INDEXED BY jobs__claim_leased
    WHERE queue = ? AND lane = ? AND lease_until > ?
"""

_DUE = """
    SELECT partition, body FROM jobs INDEXED BY jobs__claim_lanes
    WHERE queue = ? AND lane = ? AND due_at <= ? AND lease_until <= ?
    ORDER BY due_at, ordinal, id LIMIT ?
"""

LANES_AT_ONCE = 64

_NEXT_DUE = f"""
    SELECT {READY} FROM jobs INDEXED BY jobs__claim_ready
    WHERE queue = :queue {{}} ORDER BY {READY} LIMIT 1
"""
_FIRST_DUE = _NEXT_DUE.format("")
_DUE_AFTER = _NEXT_DUE.format(f"AND {READY} > :after")


@attrs.frozen
class Lease:
    """What a claim asks for."""

    queue: str
    now: Instant
    lease_ms: int
    limit: int
    slots: int


def next_due(connection: sqlite3.Connection, queue: str, after: Instant | None) -> Instant | None:
    """The earliest instant at which a job of the queue can be claimed, later than `after`."""
    sql = _FIRST_DUE if after is None else _DUE_AFTER
    row = connection.execute(sql, {"queue": queue, "after": after}).fetchone()
    return row[0] if row else None


def lanes_with_work(connection: sqlite3.Connection, lease: Lease, last: str) -> list[str]:
    """The lanes that have due jobs and room, in ring order after `last`; `limit` are enough."""
    found: list[str] = []
    for lane in _ring(connection, lease, last):
        (live,) = connection.execute(_LIVE, (lease.queue, lane, lease.now)).fetchone()
        due = (lease.queue, lane, lease.now, lease.now, 1)
        if live < lease.slots and connection.execute(_DUE, due).fetchone():
            found.append(lane)
            if len(found) == lease.limit:
                break
    return found


def _ring(connection: sqlite3.Connection, lease: Lease, last: str) -> Iterator[str]:
    """The lanes with jobs in the due buckets: those after `last`, then the others."""
    after = last
    while lanes := _lanes_after(connection, lease, after):
        yield from lanes
        after = lanes[-1]
    after = ""
    while lanes := _lanes_after(connection, lease, after):
        yield from (lane for lane in lanes if lane <= last)
        after = lanes[-1]
        if after > last:
            break


def _lanes_after(connection: sqlite3.Connection, lease: Lease, after: str) -> list[str]:
    """The next lanes with jobs in the due buckets, some dozens at a time."""
    lanes: set[str] = set()
    at: dict[str, str | int] = {
        "queue": lease.queue,
        "bucket": -(2**63),
        "after": after,
        "lanes": LANES_AT_ONCE,
    }
    while row := connection.execute(_NEXT_BUCKET, at).fetchone():
        (at["bucket"],) = row
        if row[0] > lease.now >> 20:
            break
        lanes.update(lane for (lane,) in connection.execute(_LANES_OF_BUCKET, at))
    # Beyond the first LANES_AT_ONCE a bucket may have kept lanes back.
    return sorted(lanes)[:LANES_AT_ONCE]


def lease_jobs(connection: sqlite3.Connection, lease: Lease, lanes: Sequence[str]) -> list[Claimed]:
    """Lease jobs of those lanes in turn, inside the transaction that the caller began."""
    claimed: list[Claimed] = []
    for lane in lanes:
        if len(claimed) == lease.limit:
            break
        (live,) = connection.execute(_LIVE, (lease.queue, lane, lease.now)).fetchone()
        room = min(lease.slots - live, lease.limit - len(claimed))
        if room > 0:
            claimed.extend(_lease_lane(connection, lease, lane, room))
    return claimed


def _lease_lane(
    connection: sqlite3.Connection, lease: Lease, lane: str, room: int
) -> Iterator[Claimed]:
    due = (lease.queue, lane, lease.now, lease.now, room)
    for partition, body in connection.execute(_DUE, due).fetchall():
        job = documents.decode(Job, body)
        leased = documents.stamp(
            attrs.evolve(job, claims=job.claims + 1, lease_until=lease.now + lease.lease_ms),
            job.version + 1,
        )
        values = Job.collection.values(leased)
        connection.execute(
            statements_of(Job.collection).replace,
            (
                leased.version,
                *values,
                documents.encode(leased).decode(),
                partition,
                job.id,
                job.version,
            ),
        )
        yield Claimed(partition, leased)
