"""Which jobs of a partition a claim leases, in memory."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable

from payments_core.clock import Instant
from payments_core.storage.memory.transaction import StoredRow
from payments_core.storage.query_semantics import interleave


def choose_jobs(
    rows: Iterable[StoredRow],
    now: Instant,
    last: str,
    concurrency_of: Callable[[str], int],
    limit: int,
) -> list[StoredRow]:
    """The due jobs of a partition: of the lanes behind `last` in the ring, one of each in turn."""
    lanes: dict[str, list[StoredRow]] = defaultdict(list)
    for row in rows:
        lanes[str(row.columns["lane"])].append(row)
    offered: list[list[StoredRow]] = []
    for lane in sorted(lanes, key=lambda lane: (lane <= last, lane)):
        live = sum(_int_column(row, "lease_until") > now for row in lanes[lane])
        room = max(0, concurrency_of(lane) - live)
        ready = sorted((row for row in lanes[lane] if ready_at(row) <= now), key=_order_in_lane)
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
