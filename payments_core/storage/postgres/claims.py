"""Claiming jobs in one partition of PostgreSQL: the lock, the leases and the hint.

The row of the partition and queue in `storage_hints` has the position in the ring of lanes, and
claims lock it, so that two never count a lane's slots at once. Each statement concerns one
partition. A claim waits twice for the server: for the due jobs, and for the leases with COMMIT.
`due_partitions` finds the partitions to claim from, and `due_jobs` chooses the jobs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import attrs

from payments_core.clock import Instant
from payments_core.storage import documents
from payments_core.storage.claim_semantics import lease
from payments_core.storage.jobs import NEVER, Job
from payments_core.storage.port import ClaimedJob
from payments_core.storage.postgres.due_jobs import ClaimRequest, DueJobs, Guess, choose_due_jobs
from payments_core.storage.postgres.hints import HINTS
from payments_core.storage.postgres.pending_transaction import PendingTransaction
from payments_core.storage.postgres.pipeline import Param

# The ring is locked already, so it does not matter which of the two is written first. The list
# of ids keeps a plan from reading the whole partition, which it may while the table is small.
_LEASE = f"""
    WITH turned AS (
        UPDATE {HINTS} SET due_at = $8, lane = $9 WHERE partition = $1 AND queue = $7
    )
    UPDATE jobs SET version = leased.version, claims = leased.claims, lease_until = $2,
        body = leased.body
    FROM unnest($3::text[], $4::bigint[], $5::bigint[], $6::text[])
    AS leased (id, version, claims, body)
    WHERE jobs.partition = $1 AND jobs.id = leased.id AND jobs.id = ANY ($3::text[])
"""
_SET_ASIDE = "UPDATE jobs SET lease_until = $3 WHERE partition = $1 AND id = $2"
_MOVE_HINT = f"UPDATE {HINTS} SET due_at = $3 WHERE partition = $1 AND queue = $2"
_TURN_RING = f"UPDATE {HINTS} SET due_at = $3, lane = $4 WHERE partition = $1 AND queue = $2"
_ASYNCHRONOUS = "SET LOCAL synchronous_commit = off"


@attrs.frozen
class ClaimResult:
    """The result of a claim in a partition.

    `unreadable` are the ids of jobs that it set aside. `waits_until` is None, or there are due
    jobs in `lanes` that it could not claim, and nothing changes by itself before that instant.
    `moved` says that nothing was left, and the hint was moved later. `walked` says that there was
    a backlog, so that it went through a page of the ring, and `at_end` that this was the last page.
    """

    claimed: Sequence[ClaimedJob]
    unreadable: Sequence[str]
    waits_until: Instant | None
    lanes: Sequence[str]
    moved: bool
    walked: bool
    at_end: bool


RunInTransaction = Callable[[Callable[[PendingTransaction], Any]], Any]
"""Runs something in a transaction."""


def claim_in(
    transaction: PendingTransaction,
    partition: str,
    request: ClaimRequest,
    wait: bool,
    guess: Guess,
) -> ClaimResult | None:
    """Lease due jobs of one partition, in a transaction that the caller commits.

    None if another claim holds the lock, unless this one may `wait`.
    """
    found = choose_due_jobs(transaction, partition, request, wait=wait, guess=guess)
    return None if found is None else _lease(transaction, partition, request, found)


def _lease(
    transaction: PendingTransaction, partition: str, request: ClaimRequest, found: DueJobs
) -> ClaimResult:
    """Write the leases, and the hint if it differs."""
    until = request.now + request.lease_ms
    chosen = found.chosen
    leased = [lease(job, until, request.holder) for job in chosen.jobs]
    next_change = min(found.state.next_change, until) if leased else found.state.next_change
    due_at = min(found.state.hint, request.now) if found.left else next_change
    for id in chosen.unreadable:
        transaction.enqueue(_SET_ASIDE, (partition, id, NEVER))
    turned = (request.queue, due_at, found.ring)
    if leased:
        transaction.enqueue(_LEASE, (partition, until, *_columns_of(leased), *turned))
    elif not chosen.unreadable and due_at != found.state.hint:  # a crash may undo a hint
        transaction.enqueue(_ASYNCHRONOUS, ())
    if not leased and found.walked:
        transaction.enqueue(_TURN_RING, (partition, *turned))
    elif not leased and due_at != found.state.hint:
        transaction.enqueue(_MOVE_HINT, (partition, request.queue, due_at))
    # If there was no room for more, or some are locked, the next claim may have them.
    waits = found.left and len(leased) < request.limit and not chosen.skipped
    return ClaimResult(
        [ClaimedJob(partition, job) for job in leased],
        list(chosen.unreadable),
        next_change if waits and not (leased and found.walked) else None,
        list(found.state.due),
        not found.left,
        found.walked,
        found.at_end,
    )


def _columns_of(jobs: Sequence[Job]) -> tuple[Param, ...]:
    """The values of the leases: a list for each column."""
    return (
        [job.id for job in jobs],
        [job.version for job in jobs],
        [job.claims for job in jobs],
        [documents.encode(job).decode() for job in jobs],
    )
