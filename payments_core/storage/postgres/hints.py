"""Hints in PostgreSQL: when a queue may first have work in a partition.

A row for each partition and queue has that instant, and the position in the ring of lanes. A
writer of a job moves the hint earlier, and touches no row if it is early enough; a claim
that leaves nothing due moves it later. A hint proves nothing: the two may cross, and rows that were
loaded, or that the previous release wrote, have none. `due_partitions` finds what they miss.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from payments_core.clock import Instant
from payments_core.storage.postgres.pending_transaction import PendingTransaction

HINTS = "storage_hints"
READY = "GREATEST(due_at, lease_until)"
"""When a job can be claimed, regardless of its lane."""
QUEUE_OF_READY = "(queue || '')"
"""The queue, if a statement uses `READY`: its indexes begin with this, those of lanes with
the columns. PostgreSQL has no INDEXED BY, and without statistics one index looks as good as the
other: a plan from when the table was small would read all jobs of a queue for each lane."""
LEASED = "lease_until > 0"
FOREVER: Instant = 2**63 - 1
"""The hint of a partition without jobs."""

QueueKey = tuple[str, str]
"""A partition and a queue."""

_MAKE = f"INSERT INTO {HINTS} VALUES ($1, $2, {FOREVER}, '') ON CONFLICT DO NOTHING"
_MOVE_EARLIER = (
    f"UPDATE {HINTS} SET due_at = $3 WHERE partition = $1 AND queue = $2 AND due_at > $3"
)
_MOVE_SEVERAL = f"""
    WITH late AS MATERIALIZED (
        SELECT hints.queue, ready.due_at
        FROM unnest($2::text[], $3::bigint[]) AS ready (queue, due_at)
        JOIN {HINTS} AS hints ON hints.queue = ready.queue
        WHERE hints.partition = $1 AND hints.queue = ANY ($2::text[])
        AND hints.due_at > ready.due_at
        ORDER BY hints.queue FOR UPDATE OF hints
    )
    UPDATE {HINTS} AS hints SET due_at = late.due_at FROM late
    WHERE hints.partition = $1 AND hints.queue = late.queue
"""


def make_hint(transaction: PendingTransaction, key: QueueKey) -> None:
    """Ensure that there is a row."""
    transaction.enqueue(_MAKE, key)


def move_earlier(
    transaction: PendingTransaction,
    partition: str,
    due: Mapping[str, Instant],
    known: Collection[QueueKey],
) -> None:
    """Have queues of a partition checked by these instants, in the transaction that writes
    their jobs.

    A row that is not `known` to exist is created. Call it last before COMMIT: the rows may be
    locked, and a waiter must already have all its other locks. They are locked in name order.
    """
    queues = sorted(due)
    for queue in queues:
        if (partition, queue) not in known:
            make_hint(transaction, (partition, queue))
    if len(queues) == 1:
        transaction.enqueue(_MOVE_EARLIER, (partition, queues[0], due[queues[0]]))
    elif queues:
        values = (partition, queues, [due[queue] for queue in queues])
        transaction.enqueue(_MOVE_SEVERAL, values)
