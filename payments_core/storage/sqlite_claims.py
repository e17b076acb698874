"""Claiming jobs in SQLite: which lanes have due work, and the leases.

Lanes that may have work are found in a snapshot, without the lock; each is then looked at again
by the writer. So a wrong guess costs a look and never a lease too many. Lanes are looked at, and
jobs are leased, by dozens in one statement: each statement costs more than what it does.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

import attrs

from payments_core.clock import Instant
from payments_core.jobs.record import Job
from payments_core.storage import documents
from payments_core.storage.matching import in_turn
from payments_core.storage.port import Claimed
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

_DUE = """
    FROM jobs INDEXED BY jobs__claim_order
    WHERE queue = :queue AND lane = {} AND due_at <= :now AND lease_until <= :now
    ORDER BY due_at, ordinal, id LIMIT {}
"""
_DUE_OF_LANE = (
    f"SELECT * FROM (SELECT {{place}}, rowid {_DUE.format(':lane{place}', ':room{place}')})"
)

# The lanes are a JSON array of [lane, slots].
_ROOMS = f"""
    WITH rooms (lane, room) AS MATERIALIZED (
        SELECT value ->> 0, (value ->> 1) - (
            SELECT count(*) FROM jobs INDEXED BY jobs__claim_live
            WHERE queue = :queue AND jobs.lane = value ->> 0
                AND lease_until > 0 AND lease_until > :now
        )
        FROM json_each(:lanes)
    )
    SELECT lane, room, (SELECT rowid {_DUE.format("rooms.lane", "1")}) FROM rooms WHERE room > 0
"""

_LEASE = """
    UPDATE jobs SET version = version + 1, claims = claims + 1, lease_until = :until,
        body = json_set(
            body, '$.version', version + 1, '$.claims', claims + 1, '$.lease_until', :until
        )
    WHERE rowid IN (SELECT value FROM json_each(:rows))
    RETURNING rowid, partition, body
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
    of_lane: Mapping[str, int]


@attrs.frozen
class _Lane:
    """A lane with due work: how many jobs it has room for, and the first of them."""

    name: str
    room: int
    first: int


def next_due(connection: sqlite3.Connection, queue: str, after: Instant | None) -> Instant | None:
    """The earliest instant at which a job of the queue can be claimed, later than `after`."""
    sql = _FIRST_DUE if after is None else _DUE_AFTER
    row = connection.execute(sql, {"queue": queue, "after": after}).fetchone()
    return row[0] if row else None


def lanes_with_work(connection: sqlite3.Connection, lease: Lease, last: str) -> list[str]:
    """The lanes that have due jobs and room, in ring order after `last`; `limit` are enough."""
    found: list[str] = []
    for lanes in _ring(connection, lease, last):
        found += [lane.name for lane in _looked_at(connection, lease, lanes)]
        if len(found) >= lease.limit:
            break
    return found[: lease.limit]


def _ring(connection: sqlite3.Connection, lease: Lease, last: str) -> Iterator[list[str]]:
    """The lanes with jobs in the due buckets: those after `last`, then the others."""
    first = _lanes_after(connection, lease, "")
    if len(first) < LANES_AT_ONCE:  # they are all there is
        yield sorted(first, key=lambda lane: (lane <= last, lane))
        return
    after = last
    while lanes := _lanes_after(connection, lease, after):
        yield lanes
        after = lanes[-1]
    after, lanes = "", first
    while lanes:
        yield [lane for lane in lanes if lane <= last]
        after = lanes[-1]
        if after > last:
            break
        lanes = _lanes_after(connection, lease, after)


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


def _looked_at(connection: sqlite3.Connection, lease: Lease, lanes: Sequence[str]) -> list[_Lane]:
    """Those of the lanes that have due jobs and room for them."""
    slots = [(lane, lease.of_lane.get(lane, lease.slots)) for lane in lanes]
    at = {"queue": lease.queue, "now": lease.now, "lanes": json.dumps(slots)}
    rows = connection.execute(_ROOMS, at).fetchall()
    return [_Lane(*row) for row in rows if row[2] is not None]


def lease_jobs(connection: sqlite3.Connection, lease: Lease, lanes: Sequence[str]) -> list[Claimed]:
    """Lease jobs of those lanes in turn, inside the transaction that the caller began."""
    ready = _looked_at(connection, lease, lanes)
    if len(ready) >= lease.limit:
        rows = [lane.first for lane in ready[: lease.limit]]
    else:
        rows = _several_each(connection, lease, ready)
    until = lease.now + lease.lease_ms
    leased = connection.execute(_LEASE, {"until": until, "rows": json.dumps(rows)}).fetchall()
    by_row = {
        row: Claimed(partition, documents.decode(Job, body)) for row, partition, body in leased
    }
    return [by_row[row] for row in rows]


def _several_each(
    connection: sqlite3.Connection, lease: Lease, lanes: Sequence[_Lane]
) -> list[int]:
    """The due jobs of a few lanes in turn, as far as the limit goes."""
    if not lanes:
        return []
    at: dict[str, str | int] = {"queue": lease.queue, "now": lease.now}
    for place, lane in enumerate(lanes):
        at[f"lane{place}"], at[f"room{place}"] = lane.name, min(lane.room, lease.limit)
    rows: list[list[int]] = [[] for _ in lanes]
    for place, row in connection.execute(_due_of_lanes(len(lanes)), at):
        rows[place].append(row)
    return in_turn(rows, lease.limit)


@lru_cache(maxsize=LANES_AT_ONCE)
def _due_of_lanes(count: int) -> str:
    return " UNION ALL ".join(_DUE_OF_LANE.format(place=place) for place in range(count))
