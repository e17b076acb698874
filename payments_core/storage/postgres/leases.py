"""Leases in PostgreSQL once they are given: their renewal, and the end of a dead holder's.

Each transaction is of one partition. A renewal does not wait for the disk: after a crash of the
server the job is due a little earlier. A claim does wait. One that the crash took back would leave
its worker with a version that the job never had, or that another's claim has, and by that version
a worker finds out whether its last COMMIT took place.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import partial

import attrs

from payments_core.clock import Instant
from payments_core.storage import documents
from payments_core.storage.damaged_records import try_decode
from payments_core.storage.jobs import NEVER, Job, require_holder
from payments_core.storage.port import ClaimedJob
from payments_core.storage.postgres.claims import READY, RunInTransaction
from payments_core.storage.postgres.pending_transaction import PendingTransaction
from payments_core.storage.postgres.transaction import PostgresTransaction

_ASYNCHRONOUS = "SET LOCAL synchronous_commit = off"

# In the order in which those who finish many jobs lock them.
_LOCK = "SELECT 1 FROM jobs WHERE partition = $1 AND id = ANY ($2::text[]) ORDER BY id FOR UPDATE"
_RENEW = """
    UPDATE jobs SET lease_until = $4, body = held.body
    FROM unnest($2::text[], $3::bigint[], $5::text[]) AS held (id, version, body)
    WHERE jobs.partition = $1 AND jobs.id = held.id AND jobs.version = held.version
    RETURNING jobs.id
"""
_FIND_LEASED = f"""
    SELECT partition, id, body FROM jobs
    WHERE queue = $1 AND {READY} > $2::bigint AND {READY} < {NEVER} AND lease_until > $2::bigint
"""


def renew(
    write_in: RunInTransaction, claimed: Sequence[ClaimedJob], until: Instant
) -> Sequence[ClaimedJob]:
    """Move the end of those of the leases that are still held; they are returned."""
    by_partition: dict[str, list[ClaimedJob]] = defaultdict(list)
    for item in claimed:
        by_partition[item.partition].append(item)
    held: list[ClaimedJob] = []
    for partition, items in by_partition.items():
        held += write_in(partial(_renew_in, partition=partition, items=items, until=until))
    return held


def _renew_in(
    transaction: PendingTransaction, partition: str, items: Sequence[ClaimedJob], until: Instant
) -> list[ClaimedJob]:
    renewed = [attrs.evolve(item.job, lease_until=until) for item in items]
    transaction.enqueue(_ASYNCHRONOUS, ())
    transaction.enqueue(_LOCK, (partition, [job.id for job in renewed]))
    rows = transaction.query(
        _RENEW,
        (
            partition,
            [job.id for job in renewed],
            [job.version for job in renewed],
            until,
            [documents.encode(job).decode() for job in renewed],
        ),
    )
    held = {(id or b"").decode() for (id,) in rows}
    return [item for item in items if item.job.id in held]


def end_leases(
    look_in: RunInTransaction, write_in: RunInTransaction, queue: str, holder: str, now: Instant
) -> int:
    """Make due again what a holder has leased; how many jobs it was."""
    require_holder(holder)
    rows = look_in(lambda transaction: transaction.query(_FIND_LEASED, (queue, now)))
    by_partition: dict[str, list[str]] = defaultdict(list)
    for partition, id, body in rows:
        job = try_decode(Job, body or b"")
        if job is not None and job.holder == holder:
            by_partition[(partition or b"").decode()].append((id or b"").decode())
    ended = 0
    for partition, found in by_partition.items():
        ended += write_in(partial(_end_in, partition=partition, ids=found, holder=holder, now=now))
    return ended


def _end_in(
    transaction: PendingTransaction, partition: str, ids: Sequence[str], holder: str, now: Instant
) -> int:
    tx = PostgresTransaction(transaction, partition)
    jobs = tx.get_many(Job, ids, for_update=True)
    leased = [job for job in jobs.values() if job.holder == holder and job.lease_until > now]
    for job in leased:
        tx.replace(attrs.evolve(job, lease_until=0, holder=""))
    return len(leased)
