"""Claiming jobs in one partition of SQLite: which lanes have due work, and the leases.

Lanes that may have work are found in a snapshot, without the lock; each is then checked again
by the writer. So a wrong guess costs a check and never an extra lease. Lanes are checked, and
jobs are leased, by dozens in one statement: a statement's overhead exceeds its work.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice

import attrs

from payments_core.clock import Instant
from payments_core.storage.damaged_records import try_decode
from payments_core.storage.jobs import NEVER, Job
from payments_core.storage.port import ClaimedJob
from payments_core.storage.query_semantics import interleave
from payments_core.storage.sqlite.schema import BUCKET, FREE, LEASED, bucket_of

_HERE = "queue = :queue AND partition = :partition"

_FREE = f"FROM jobs INDEXED BY jobs__free_lanes WHERE {_HERE} AND {FREE}"

_NEXT_BUCKET = f"SELECT {BUCKET} {_FREE} AND {BUCKET} > :bucket ORDER BY {BUCKET} LIMIT 1"

# SQLite has no skip scan without statistics, and `min` does not see an expression's index:
# each step asks the index for the next lane.
_NEXT_LANE = f"SELECT lane {_FREE} AND {BUCKET} = :bucket AND lane > {{}} ORDER BY lane LIMIT 1"
_LANES_OF_BUCKET = f"""
    WITH RECURSIVE lanes (lane) AS (
        SELECT * FROM ({_NEXT_LANE.format(":after")})
        UNION ALL
        SELECT ({_NEXT_LANE.format("lanes.lane")}) FROM lanes WHERE lanes.lane IS NOT NULL
        LIMIT :lanes
    )
    SELECT lane FROM lanes WHERE lane IS NOT NULL
"""

_LEASED = f"FROM jobs INDEXED BY jobs__lane_leases WHERE {_HERE} AND {LEASED}"

_LANES_OF_ENDED_LEASES = f"""
    SELECT DISTINCT lane {_LEASED} AND lane > :after AND lease_until <= :now AND due_at <= :now
    ORDER BY lane LIMIT :lanes
"""

_DUE = f"""
    FROM jobs INDEXED BY jobs__by_queue_lane
    WHERE {_HERE} AND lane = {{}} AND due_at <= :now AND lease_until <= :now
    ORDER BY due_at, ordinal, id LIMIT {{}}
"""
_DUE_OF_LANE = (
    f"SELECT * FROM (SELECT {{place}}, rowid {_DUE.format(':lane{place}', ':room{place}')})"
)

_FIND_LANES = f"""
    SELECT
        value,
        (SELECT count(*) {_LEASED} AND lane = value AND lease_until > :now),
        (SELECT rowid {_DUE.format("value", "1")})
    FROM json_each(:lanes)
"""

_LEASE = """
    UPDATE jobs SET version = version + 1, claims = claims + 1, lease_until = :until,
        body = json_set(
            body, '$.version', version + 1, '$.claims', claims + 1, '$.lease_until', :until,
            '$.holder', :holder
        )
    WHERE rowid IN (SELECT value FROM json_each(:rows))
    RETURNING rowid, partition, body
"""

_RENEW = """
    UPDATE jobs SET lease_until = ?, body = json_set(body, '$.lease_until', ?)
    WHERE partition = ? AND id = ? AND version = ? RETURNING 1
"""

_END_LEASES = f"""
    UPDATE jobs SET version = version + 1, lease_until = 0,
        body = json_set(body, '$.version', version + 1, '$.lease_until', 0, '$.holder', '')
    WHERE rowid IN (
        SELECT rowid FROM jobs INDEXED BY jobs__lane_leases
        WHERE queue = :queue AND {LEASED} AND lease_until > :now AND lease_until < :never
    )
    AND json_valid(body) AND json_extract(body, '$.holder') = :holder
"""

_FIND_LEASES = f"""
    SELECT partition, body FROM jobs INDEXED BY jobs__lane_leases
    WHERE queue = :queue AND {LEASED} AND lease_until > :after AND lease_until < :never
    ORDER BY lease_until DESC, partition, id LIMIT :limit
"""

_BODIES = """
    SELECT rowid, partition, id, body FROM jobs WHERE rowid IN (SELECT value FROM json_each(:rows))
"""
_SET_ASIDE = "UPDATE jobs SET lease_until = ? WHERE rowid = ?"

MAX_LANES = 96
SPARE_LANES = 32
"""How many more lanes than jobs are checked, since some will have no room."""


class UnreadableJobs(Exception):
    """One of the jobs to be leased may be unreadable; undo, and `set_aside`."""

    def __init__(self, rows: str) -> None:
        super().__init__(rows)
        self.rows = rows


@attrs.frozen
class ClaimRequest:
    """The request of a claim."""

    queue: str
    now: Instant
    lease_ms: int
    limit: int
    lane_concurrency: int
    lane_overrides: Mapping[str, int]
    holder: str
    partition: str = ""
    """The partition of a step; a whole claim does not use it."""

    @property
    def lane_batch(self) -> int:
        """How many lanes are checked together."""
        return min(self.limit + SPARE_LANES, MAX_LANES)


@attrs.frozen
class _Lane:
    """A lane with due work: how many jobs it has room for, and the first of them."""

    name: str
    room: int
    first: int


def find_lanes_with_work(
    connection: sqlite3.Connection, request: ClaimRequest, last: str
) -> Sequence[str]:
    """Some dozens of lanes in ring order after `last`, of which the first has due jobs and room.

    Only the writer, whose pages stay in memory, checks the others.
    """
    for lanes in _iter_ring(connection, request, last):
        for ready in _check_lanes(connection, request, lanes):
            return lanes[lanes.index(ready.name) :]
    return ()


def next_ring_position(
    request: ClaimRequest, claimed: Sequence[ClaimedJob], lanes: Sequence[str]
) -> str:
    """The lane after which the next claim continues in the ring."""
    if len(lanes) < request.lane_batch:  # they may be all lanes, and the turn continues among them
        return claimed[-1].job.lane
    return list(dict.fromkeys(item.job.lane for item in claimed))[-1]


def _iter_ring(
    connection: sqlite3.Connection, request: ClaimRequest, last: str
) -> Iterator[list[str]]:
    """The lanes with jobs in the due buckets: those after `last`, then the others."""
    lanes = _find_lanes_after(connection, request, last)
    while len(lanes) == request.lane_batch:
        yield lanes
        lanes = _find_lanes_after(connection, request, lanes[-1])
    after = ""
    while after < last:
        begin = _find_lanes_after(connection, request, after)
        yield lanes + [lane for lane in begin if lane <= last]
        lanes, after = [], begin[-1] if len(begin) == request.lane_batch else last
    if lanes:
        yield lanes


def _find_lanes_after(
    connection: sqlite3.Connection, request: ClaimRequest, after: str
) -> list[str]:
    """The next lanes with jobs in the due buckets or with leases that ended, by dozens."""
    at: dict[str, str | int] = {
        "queue": request.queue,
        "partition": request.partition,
        "bucket": -(2**63),
        "after": after,
        "lanes": request.lane_batch,
        "now": request.now,
    }
    lanes = {lane for (lane,) in connection.execute(_LANES_OF_ENDED_LEASES, at)}
    while row := connection.execute(_NEXT_BUCKET, at).fetchone():
        (at["bucket"],) = row
        if row[0] > bucket_of(request.now):
            break
        lanes.update(lane for (lane,) in connection.execute(_LANES_OF_BUCKET, at))
    # Beyond the limit, each of these may have left lanes out.
    return sorted(lanes)[: request.lane_batch]


def _check_lanes(
    connection: sqlite3.Connection, request: ClaimRequest, lanes: Sequence[str]
) -> Iterator[_Lane]:
    """The lanes that have due jobs and room for them."""
    at = {
        "queue": request.queue,
        "partition": request.partition,
        "now": request.now,
        "lanes": json.dumps(lanes),
    }
    cursor = connection.execute(_FIND_LANES, at)
    try:
        for lane, taken, first in cursor:
            room = request.lane_overrides.get(lane, request.lane_concurrency) - taken
            if room > 0 and first is not None:
                yield _Lane(lane, room, first)
    finally:
        cursor.close()  # an unfinished one would keep its snapshot open


def lease_jobs(
    connection: sqlite3.Connection, request: ClaimRequest, lanes: Sequence[str]
) -> list[ClaimedJob]:
    """Lease jobs of those lanes in turn, inside the transaction that the caller began."""
    ready = list(islice(_check_lanes(connection, request, lanes), request.limit))
    if len(ready) == request.limit:
        rows = [lane.first for lane in ready]
    else:
        rows = _select_due_jobs(connection, request, ready)
    until = request.now + request.lease_ms
    chosen = json.dumps(rows)
    try:
        at = {"until": until, "rows": chosen, "holder": request.holder}
        leased = connection.execute(_LEASE, at).fetchall()
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode != sqlite3.SQLITE_ERROR:
            raise
        raise UnreadableJobs(chosen) from error  # "malformed JSON"
    by_row: dict[int, ClaimedJob] = {}
    for row, partition, body in leased:
        job = try_decode(Job, body)
        if job is None:
            raise UnreadableJobs(chosen)
        by_row[row] = ClaimedJob(partition, job)
    return [by_row[row] for row in rows]


def renew(
    connection: sqlite3.Connection, claimed: Sequence[ClaimedJob], until: Instant
) -> list[ClaimedJob]:
    """Move the end of the leases that are still held, and return them."""
    held = []
    for item in claimed:
        at = (until, until, item.partition, item.job.id, item.job.version)
        if connection.execute(_RENEW, at).fetchall():
            held.append(item)
    return held


def end_leases(connection: sqlite3.Connection, queue: str, holder: str, now: Instant) -> int:
    """Make a holder's leased jobs due again; return how many."""
    at = {"queue": queue, "holder": holder, "now": now, "never": NEVER}
    return connection.execute(_END_LEASES, at).rowcount


def find_leases(
    connection: sqlite3.Connection, queue: str, after: Instant, limit: int
) -> list[ClaimedJob]:
    """The leased jobs of a queue whose leases end latest, and later than `after`."""
    at = {"queue": queue, "after": after, "never": NEVER, "limit": limit}
    found = ((name, try_decode(Job, body)) for name, body in connection.execute(_FIND_LEASES, at))
    return [ClaimedJob(partition, job) for partition, job in found if job is not None]


def set_aside(connection: sqlite3.Connection, rows: str) -> list[tuple[str, str]]:
    """Lease unreadable jobs permanently; return their partitions and ids."""
    found = connection.execute(_BODIES, {"rows": rows}).fetchall()
    unreadable = [item for item in found if try_decode(Job, item[3]) is None]
    connection.executemany(_SET_ASIDE, [(NEVER, row) for row, *_ in unreadable])
    return [(partition, id) for _, partition, id, _ in unreadable]


def _select_due_jobs(
    connection: sqlite3.Connection, request: ClaimRequest, lanes: Sequence[_Lane]
) -> list[int]:
    """The due jobs of a few lanes in turn, up to the limit."""
    if not lanes:
        return []
    at: dict[str, str | int] = {
        "queue": request.queue,
        "partition": request.partition,
        "now": request.now,
    }
    for place, lane in enumerate(lanes):
        at[f"lane{place}"], at[f"room{place}"] = lane.name, min(lane.room, request.limit)
    rows: list[list[int]] = [[] for _ in lanes]
    for place, row in connection.execute(_due_statement(len(lanes)), at):
        rows[place].append(row)
    return interleave(rows, request.limit)


@lru_cache(maxsize=2 * MAX_LANES)
def _due_statement(count: int) -> str:
    return " UNION ALL ".join(_DUE_OF_LANE.format(place=place) for place in range(count))
