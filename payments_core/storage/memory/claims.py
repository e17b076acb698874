"""Which jobs a claim leases, in memory."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable

from payments_core.clock import Instant
from payments_core.storage.memory.transaction import StoredRow
from payments_core.storage.query_semantics import interleave

JobRow = tuple[str, StoredRow]
"""A job at rest, and its partition."""


def choose_jobs(
    rows: Iterable[JobRow],
    now: Instant,
    last: str,
    concurrency_of: Callable[[str], int],
    limit: int,
) -> list[JobRow]:
    """The due jobs of the lanes behind `last` in the ring, one of each lane in turn."""
    lanes: dict[str, list[JobRow]] = defaultdict(list)
    for partition, row in rows:
        lanes[str(row.columns["lane"])].append((partition, row))
    offered: list[list[JobRow]] = []
    for lane in sorted(lanes, key=lambda lane: (lane <= last, lane)):
        live = sum(_int_column(row, "lease_until") > now for _, row in lanes[lane])
        room = max(0, concurrency_of(lane) - live)
        ready = [(partition, row) for partition, row in lanes[lane] if ready_at(row) <= now]
        ready.sort(key=lambda item: _order_in_lane(item[1]))
        offered.append(ready[:room])
    return interleave(offered, limit)


def ready_at(row: StoredRow) -> Instant:
    """The instant at which a job can be claimed, but for its lane."""
    return max(_int_column(row, "due_at"), _int_column(row, "lease_until"))


def _int_column(row: StoredRow, column: str) -> int:
    value = row.columns[column]
    assert isinstance(value, int)
    return value


def _order_in_lane(row: StoredRow) -> tuple[int, int, str]:
    return _int_column(row, "due_at"), _int_column(row, "ordinal"), row.id
