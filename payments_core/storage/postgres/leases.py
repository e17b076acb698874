"""Leases in PostgreSQL once they are given: their renewal, and the end of a dead holder's.

A renewal waits neither for the disk nor for a lock. After a crash of the server the job is due a
little earlier. A claim does wait for the disk: one that the crash took back would leave its worker
with a version that the job never had, or that another's claim has, and by that version a worker
finds out whether its last COMMIT took place.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial

import attrs

from payments_core.clock import MINUTE, Instant
from payments_core.storage import bulk, documents
from payments_core.storage.damaged_records import try_decode
from payments_core.storage.jobs import Job, require_holder
from payments_core.storage.port import ClaimedJob, Transaction
from payments_core.storage.postgres.claims import RunInTransaction
from payments_core.storage.postgres.hints import READY
from payments_core.storage.postgres.pending_transaction import PendingTransaction

_ASYNCHRONOUS = "SET LOCAL synchronous_commit = off"

# A row that another transaction has locked is passed over. Most likely that is the commit of its
# own handler, which may wait for a tenant's locks: the leases of others must not wait behind it.
_RENEW = """
    WITH held AS MATERIALIZED (
        SELECT * FROM unnest($1::text[], $2::text[], $3::bigint[], $5::text[])
        AS held (partition, id, version, body)
    ),
    free AS MATERIALIZED (
        SELECT jobs.partition, jobs.id, held.body FROM held
        JOIN jobs ON jobs.partition = held.partition AND jobs.id = held.id
        WHERE jobs.version = held.version FOR UPDATE OF jobs SKIP LOCKED
    )
    UPDATE jobs SET lease_until = $4, body = free.body FROM free
    WHERE jobs.partition = free.partition AND jobs.id = free.id
    RETURNING jobs.partition, jobs.id
"""
_FIND_HELD = """
    SELECT jobs.partition, jobs.id
    FROM unnest($1::text[], $2::text[], $3::bigint[]) AS held (partition, id, version)
    JOIN jobs ON jobs.partition = held.partition AND jobs.id = held.id
    WHERE jobs.version = held.version
"""
Transact = Callable[[str, Callable[[Transaction], int]], int]
"""Runs a work in a partition, as `Storage.transact`."""

LONGEST_LEASE_MS = 10 * MINUTE

# Behind the leases lie all jobs of the queue that are due later, perhaps millions.
_FIND_LEASED = f"""
    SELECT partition, id, body FROM jobs
    WHERE queue = $1 AND {READY} > $2::bigint AND {READY} <= $2::bigint + {LONGEST_LEASE_MS}
    AND lease_until > $2::bigint
"""


def renew(
    write_in: RunInTransaction, claimed: Sequence[ClaimedJob], until: Instant
) -> Sequence[ClaimedJob]:
    """Move the end of those of the leases that are still held; they are returned."""
    if not claimed:
        return []
    held: set[tuple[str, str]] = write_in(partial(_renew_all, claimed=claimed, until=until))
    return [item for item in claimed if (item.partition, item.job.id) in held]


def _renew_all(
    transaction: PendingTransaction, claimed: Sequence[ClaimedJob], until: Instant
) -> set[tuple[str, str]]:
    partitions = [item.partition for item in claimed]
    ids = [item.job.id for item in claimed]
    versions = [item.job.version for item in claimed]
    renewed = [attrs.evolve(item.job, lease_until=until) for item in claimed]
    bodies = [documents.encode(job).decode() for job in renewed]
    transaction.enqueue(_ASYNCHRONOUS, ())
    rows = transaction.query(_RENEW, (partitions, ids, versions, until, bodies))
    if len(rows) < len(claimed):  # lost, or locked
        rows = rows + transaction.query(_FIND_HELD, (partitions, ids, versions))
    return {((partition or b"").decode(), (id or b"").decode()) for partition, id in rows}


def end_leases(
    look_in: RunInTransaction, transact: Transact, queue: str, holder: str, now: Instant
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
        ended += transact(partition, partial(_end_in, ids=found, holder=holder, now=now))
    return ended


def _end_in(tx: Transaction, ids: Sequence[str], holder: str, now: Instant) -> int:
    jobs = bulk.lock_many(tx, Job, ids)
    leased = [job for job in jobs.values() if job.holder == holder and job.lease_until > now]
    for job in leased:
        tx.replace(attrs.evolve(job, lease_until=0, holder=""))
    return len(leased)
