"""The partitions that a claim in SQLite visits, and their order.

A look finds the partitions with due jobs, in a snapshot: the file has one index of them, which is
never stale, so there are no hints. The claim then takes one partition after another, each in a
separate transaction. A handle keeps the rings in memory.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from typing import Any, Protocol

from payments_core.clock import Instant
from payments_core.evolve import evolve
from payments_core.storage.damaged_records import log_damaged_jobs
from payments_core.storage.port import ClaimedJob, StorageUnavailable
from payments_core.storage.sqlite.claims import (
    ClaimRequest,
    UnreadableJobs,
    find_lanes_with_work,
    lease_jobs,
    next_ring_position,
    set_aside,
)
from payments_core.storage.sqlite.schema import BUCKET, FREE, LEASED, bucket_of

MAX_DUE = 256
"""Partitions are searched among this many due jobs; for a longer backlog, in the index of all."""

_FIRST_DUE = f"""
    SELECT partition FROM jobs INDEXED BY jobs__free_due
    WHERE queue = :queue AND {FREE} AND due_at <= :now ORDER BY due_at LIMIT {MAX_DUE}
"""
_ENDED_LEASES = f"""
    SELECT DISTINCT partition FROM jobs INDEXED BY jobs__lane_leases
    WHERE queue = :queue AND {LEASED} AND lease_until <= :now AND due_at <= :now
"""

_FREE = f"FROM jobs INDEXED BY jobs__free_lanes WHERE queue = :queue AND {FREE}"
_NEXT = f"SELECT partition {_FREE} AND partition > {{}} ORDER BY partition LIMIT 1"
_ALL_DUE = f"""
    WITH RECURSIVE found (name) AS (
        SELECT * FROM ({_NEXT.format("''")})
        UNION ALL
        SELECT ({_NEXT.format("found.name")}) FROM found WHERE name IS NOT NULL
    )
    SELECT name FROM found WHERE name IS NOT NULL
    AND (SELECT {BUCKET} {_FREE} AND partition = name ORDER BY {BUCKET} LIMIT 1) <= :bucket
"""
"""The last bucket may contain partitions whose jobs are due a little later."""

_NEXT_DUE = f"""
    SELECT min(at) FROM (
        SELECT * FROM (
            SELECT due_at AS at FROM jobs INDEXED BY jobs__free_due
            WHERE queue = :queue AND {FREE} AND due_at > :after ORDER BY due_at LIMIT 1
        )
        UNION ALL
        SELECT min(max(due_at, lease_until)) FROM jobs INDEXED BY jobs__lane_leases
        WHERE queue = :queue AND {LEASED} AND max(due_at, lease_until) > :after
    )
"""


def next_due(connection: sqlite3.Connection, queue: str, after: Instant | None) -> Instant | None:
    """The earliest instant at which a job of the queue can be claimed, later than `after`."""
    at = {"queue": queue, "after": -(2**63) if after is None else after}
    row: tuple[Instant | None] = connection.execute(_NEXT_DUE, at).fetchone()
    return row[0]


def find_due_partitions(connection: sqlite3.Connection, queue: str, now: Instant) -> set[str]:
    """The partitions that may have due jobs."""
    at = {"queue": queue, "now": now, "bucket": bucket_of(now)}
    due = connection.execute(_FIRST_DUE, at).fetchall()
    if len(due) == MAX_DUE:
        due = connection.execute(_ALL_DUE, at).fetchall()
    return {name for (name,) in (*due, *connection.execute(_ENDED_LEASES, at))}


class WriteFunction(Protocol):
    """Runs something in a transaction and commits."""

    def __call__(
        self, run: Callable[[sqlite3.Connection], Any], *, durable: bool = True
    ) -> Any: ...


class Claims:
    """The claims of one handle."""

    def __init__(
        self,
        open_snapshot: Callable[[], AbstractContextManager[sqlite3.Connection]],
        write: WriteFunction,
    ) -> None:
        self._open_snapshot = open_snapshot
        self._write = write
        self._partitions: dict[str, str] = {}
        """The position in the ring of partitions of each queue."""
        self._lanes: dict[tuple[str, str], str] = {}
        """The position in the ring of lanes of each queue and partition."""

    def claim(self, request: ClaimRequest) -> Sequence[ClaimedJob]:
        """Lease jobs of the next partitions in the ring that have due work and room."""
        with self._open_snapshot() as connection:
            found = find_due_partitions(connection, request.queue, request.now)
        last = self._partitions.get(request.queue, "")
        claimed: list[ClaimedJob] = []
        for partition in sorted(found, key=lambda name: (name <= last, name)):
            rest = request.limit - len(claimed)
            if rest <= 0:
                break
            taken = self._claim_in(evolve(request, partition=partition, limit=rest))
            if taken:
                self._partitions[request.queue] = partition
            claimed += taken
        return claimed

    def _claim_in(self, request: ClaimRequest) -> Sequence[ClaimedJob]:
        """Lease jobs of the next lanes of a partition; none if no lane has due work and room."""
        key = (request.queue, request.partition)
        while True:
            with self._open_snapshot() as connection:
                lanes = find_lanes_with_work(connection, request, self._lanes.get(key, ""))
            if not lanes:
                return []
            try:
                # A power cut also ends the holder of the lease, which need not outlast it.
                claimed = self._write(
                    partial(lease_jobs, request=request, lanes=lanes), durable=False
                )
            except UnreadableJobs as error:
                self._set_aside(error)
                continue
            if claimed:
                self._lanes[key] = next_ring_position(request, claimed, lanes)
                return list(claimed)

    def _set_aside(self, unreadable: UnreadableJobs) -> None:
        jobs = self._write(partial(set_aside, rows=unreadable.rows))
        log_damaged_jobs(jobs)
        if not jobs:  # they can be read after all
            raise StorageUnavailable("SQLite: jobs could not be leased") from unreadable
