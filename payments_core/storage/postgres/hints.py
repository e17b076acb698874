"""Hints in PostgreSQL: when a queue may first have work in a partition.

A row for each partition and queue has that instant, and where the ring of lanes stands. Whoever
writes a job moves the hint to become earlier, and touches no row where it is early enough; a claim
that leaves nothing due moves it later. A hint proves nothing: the two may cross, and rows that were
loaded, or that the release before wrote, have none. `due_partitions` sees to what they miss.
"""

from __future__ import annotations

from collections.abc import Collection

from payments_core.clock import Instant
from payments_core.storage.postgres.pending_transaction import PendingTransaction

HINTS = "storage_hints"
READY = "GREATEST(due_at, lease_until)"
"""When a job can be claimed, but for its lane."""
LEASED = "lease_until > 0"
FOREVER: Instant = 2**63 - 1
"""The hint of a partition without jobs."""

QueueKey = tuple[str, str]
"""A partition and a queue."""

_MAKE = f"INSERT INTO {HINTS} VALUES ($1, $2, {FOREVER}, '') ON CONFLICT DO NOTHING"
_MOVE_EARLIER = (
    f"UPDATE {HINTS} SET due_at = $3 WHERE partition = $1 AND queue = $2 AND due_at > $3"
)


def make_hint(transaction: PendingTransaction, key: QueueKey) -> None:
    """See to it that there is a row."""
    transaction.enqueue(_MAKE, key)


def move_earlier(
    transaction: PendingTransaction, key: QueueKey, due_at: Instant, known: Collection[QueueKey]
) -> None:
    """Let the queue be looked at by that instant, in the transaction that writes its job.

    A row that is not `known` to be there is made. The last thing before COMMIT: the row may be
    locked, and what waits for it must have all its other locks.
    """
    if key not in known:
        make_hint(transaction, key)
    transaction.enqueue(_MOVE_EARLIER, (*key, due_at))
