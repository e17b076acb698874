"""Claiming jobs in PostgreSQL: which lanes have due work, and the leases.

A row for each queue says where its ring of lanes stands. Claims lock it, so that two never count
a lane's slots at once; looking for work does not.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
import psycopg

from payments_core.clock import Instant
from payments_core.jobs.record import Job
from payments_core.storage import documents
from payments_core.storage.matching import in_turn
from payments_core.storage.port import Claimed
from payments_core.storage.postgres_rows import WritingRows

Connection = psycopg.Connection[tuple[Any, ...]]
Free = tuple[str, bytes]

RINGS = "storage_rings"
READY = "GREATEST(due_at, lease_until)"
BUCKET = f"{READY} >> 20"
"""When a job can be claimed, in steps of 17 minutes; a claim finds the due lanes by these."""

_BUCKETS = f"FROM jobs WHERE queue = %(queue)s AND ({BUCKET})"
_NEXT_BUCKET = f"SELECT {BUCKET} {_BUCKETS} > %(bucket)s ORDER BY {BUCKET} LIMIT 1".encode()
_NEXT_LANE = f"SELECT lane {_BUCKETS} = %(bucket)s"
_LANES_OF_BUCKET = f"""
    WITH RECURSIVE lanes (lane) AS (
        ({_NEXT_LANE} ORDER BY lane LIMIT 1)
        UNION ALL
        SELECT ({_NEXT_LANE} AND jobs.lane > lanes.lane ORDER BY jobs.lane LIMIT 1)
        FROM lanes WHERE lanes.lane IS NOT NULL
    )
    SELECT lane FROM lanes WHERE lane IS NOT NULL
""".encode()

_LANE = "FROM jobs WHERE queue = %s AND lane = %s"
_LIVE = f"SELECT count(*) {_LANE} AND lease_until > %s".encode()
_DUE = f"{_LANE} AND due_at <= %s AND lease_until <= %s ORDER BY due_at, ordinal, id LIMIT %s"
_HEAD = f"SELECT partition, id {_DUE}".encode()
_FREE = f"SELECT partition, id, body {_DUE} FOR UPDATE SKIP LOCKED".encode()


@attrs.frozen
class Lease:
    """What a claim asks for."""

    queue: str
    now: Instant
    lease_ms: int
    limit: int
    slots: int
    of_lane: Mapping[str, int]


def next_due(connection: Connection, queue: str, after: Instant | None) -> Instant | None:
    """The earliest instant at which a job of the queue can be claimed, later than `after`."""
    later = "" if after is None else f"AND {READY} > %(after)s"
    sql = f"SELECT {READY} FROM jobs WHERE queue = %(queue)s {later} ORDER BY {READY} LIMIT 1"
    row = connection.execute(sql.encode(), {"queue": queue, "after": after}).fetchone()
    return row[0] if row else None


def due_lanes(connection: Connection, lease: Lease) -> set[str]:
    """The lanes that may have due jobs."""
    lanes: set[str] = set()
    at: dict[str, str | int] = {"queue": lease.queue, "bucket": -(2**62)}
    while row := connection.execute(_NEXT_BUCKET, at).fetchone():
        (at["bucket"],) = row
        if row[0] > lease.now >> 20:
            break
        lanes.update(lane for (lane,) in connection.execute(_LANES_OF_BUCKET, at))
    return lanes


def lease_jobs(connection: Connection, lease: Lease, lanes: set[str]) -> list[Claimed]:
    """Lease jobs of those lanes in turn, in the caller's transaction."""
    make = f"INSERT INTO {RINGS} VALUES (%s, '') ON CONFLICT DO NOTHING"
    connection.execute(make.encode(), (lease.queue,))
    ring = connection.execute(
        f"SELECT lane FROM {RINGS} WHERE queue = %s FOR UPDATE".encode(), (lease.queue,)
    ).fetchone()
    last: str = ring[0] if ring else ""
    free: list[list[Free]] = []
    for lane in sorted(lanes, key=lambda lane: (lane <= last, lane)):
        if len(free) == lease.limit:
            break
        live = connection.execute(_LIVE, (lease.queue, lane, lease.now)).fetchone()
        slots = lease.of_lane.get(lane, lease.slots)
        room = min(slots - (live[0] if live else 0), lease.limit)
        if room > 0 and (found := _free(connection, lease, lane, room)):
            free.append(found)
    claimed = [_leased(connection, lease, *item) for item in in_turn(free, lease.limit)]
    if claimed:
        connection.execute(
            f"UPDATE {RINGS} SET lane = %s WHERE queue = %s".encode(),
            (claimed[-1].job.lane, lease.queue),
        )
    return claimed


def _free(connection: Connection, lease: Lease, lane: str, room: int) -> list[Free]:
    """The first jobs of the lane that are due, locked."""
    due = (lease.queue, lane, lease.now, lease.now)
    head = connection.execute(_HEAD, (*due, 1)).fetchone()
    free = connection.execute(_FREE, (*due, room)).fetchall()
    if not free or free[0][:2] != head:
        return []  # the first job is being changed: the lane keeps its order and waits
    return [(partition, body) for partition, _, body in free]


def _leased(connection: Connection, lease: Lease, partition: str, body: bytes) -> Claimed:
    job = documents.decode(Job, body)
    until = lease.now + lease.lease_ms
    leased = attrs.evolve(job, claims=job.claims + 1, lease_until=until)
    WritingRows(connection, partition).replace(leased)
    return Claimed(partition, documents.stamp(leased, job.version + 1))
