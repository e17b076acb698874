"""Existing leases in PostgreSQL: their renewal, and the end of a dead holder's.

A renewal waits neither for the disk nor for a lock. After a crash of the server the job is due a
little earlier. A claim does wait for the disk: a claim undone by the crash would leave its worker
with a version that the job never had, or that another's claim has, and by that version a worker
finds out whether its last COMMIT succeeded.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import partial

from payments_core.clock import MINUTE, Instant
from payments_core.evolve import evolve
from payments_core.storage import documents
from payments_core.storage.damaged_records import try_decode
from payments_core.storage.jobs import NEVER, Job, require_holder
from payments_core.storage.port import ClaimedJob, StorageUnavailable, Transaction
from payments_core.storage.postgres.claims import RunInTransaction
from payments_core.storage.postgres.errors import is_node_lost
from payments_core.storage.postgres.hints import LEASED, QUEUE_OF_READY, READY
from payments_core.storage.postgres.pending_transaction import PendingTransaction
from payments_core.storage.postgres.pipeline import Param

_ASYNCHRONOUS = "SET LOCAL synchronous_commit = off"

# The list keeps a plan from reading the whole partition, which it may while a table is small.
_GIVEN = "jobs.partition = $1 AND jobs.id = ANY ($2::text[])"

# A row that another transaction has locked is skipped. Most likely that is the commit of its
# own handler, which may wait for a tenant's locks: the leases of others must not wait behind it.
_RENEW = f"""
    WITH free AS MATERIALIZED (
        SELECT jobs.id, held.body
        FROM unnest($2::text[], $3::bigint[], $5::text[]) AS held (id, version, body)
        JOIN jobs ON jobs.id = held.id
        WHERE {_GIVEN} AND jobs.version = held.version FOR UPDATE OF jobs SKIP LOCKED
    )
    UPDATE jobs SET lease_until = $4, body = free.body FROM free
    WHERE {_GIVEN} AND jobs.id = free.id
    RETURNING jobs.id
"""
_FIND_HELD = f"""
    SELECT jobs.id FROM unnest($2::text[], $3::bigint[]) AS held (id, version)
    JOIN jobs ON jobs.id = held.id
    WHERE {_GIVEN} AND jobs.version = held.version
"""
Transact = Callable[[str, Callable[[Transaction], int]], int]
"""Runs a work in a partition, like `Storage.transact`."""

LONGEST_LEASE_MS = 10 * MINUTE

# After the leases come all jobs of the queue that are due later, perhaps millions.
_FIND_LEASED = f"""
    SELECT partition, id, body FROM jobs
    WHERE {QUEUE_OF_READY} = $1 AND {READY} > $2::bigint
    AND {READY} <= $2::bigint + {LONGEST_LEASE_MS}
    AND lease_until > $2::bigint
"""

# By the index of leases, which has no other jobs: it is read from end to end.
_FIND_LEASES = f"""
    SELECT partition, body FROM jobs
    WHERE queue = $1 AND {LEASED} AND lease_until > $2::bigint AND lease_until < {NEVER}
    ORDER BY lease_until DESC, partition, id LIMIT $3::bigint
"""


def renew(
    write_in: RunInTransaction,
    claimed: Sequence[ClaimedJob],
    until: Instant,
    *,
    each_partition_apart: bool,
) -> Sequence[ClaimedJob]:
    """Move the end of the leases that are still held, and return them.

    In one transaction, or separately: then no commit spans several machines, and one that is away
    does not end the leases of others.
    """
    by_partition: dict[str, list[ClaimedJob]] = defaultdict(list)
    for item in claimed:
        by_partition[item.partition].append(item)
    groups = list(by_partition.values())
    held: list[ClaimedJob] = []
    failure: StorageUnavailable | None = None
    for together in [[group] for group in groups] if each_partition_apart else [groups]:
        try:
            held += write_in(partial(_renew_in, groups=together, until=until)) if together else ()
        except StorageUnavailable as error:
            if not is_node_lost(error.__cause__):
                raise
            failure = error
    if failure is not None:
        raise failure
    return held


def _renew_in(
    transaction: PendingTransaction, groups: Sequence[Sequence[ClaimedJob]], until: Instant
) -> list[ClaimedJob]:
    """Renew the jobs of some partitions, each group of one partition."""
    transaction.enqueue(_ASYNCHRONOUS, ())
    renewing = [(_RENEW, _renewal(items, until)) for items in groups]
    found = [*transaction.query_many(*renewing)]
    short = [place for place, rows in enumerate(found) if len(rows) < len(groups[place])]
    if short:  # lost, or locked
        finding = [(_FIND_HELD, _renewal(groups[place], until)[:3]) for place in short]
        for place, rows in zip(short, transaction.query_many(*finding), strict=True):
            found[place] = found[place] + rows
    held = [{(id or b"").decode() for (id,) in rows} for rows in found]
    return [
        item
        for items, ids in zip(groups, held, strict=True)
        for item in items
        if item.job.id in ids
    ]


def _renewal(items: Sequence[ClaimedJob], until: Instant) -> tuple[Param, ...]:
    """The parameters of a partition's renewal: the partition, ids, versions, the end, bodies."""
    renewed = [evolve(item.job, lease_until=until) for item in items]
    return (
        items[0].partition,
        [item.job.id for item in items],
        [item.job.version for item in items],
        until,
        [documents.encode(job).decode() for job in renewed],
    )


def find_leases(
    transaction: PendingTransaction, queue: str, after: Instant, limit: int
) -> list[ClaimedJob]:
    """The leased jobs of a queue whose leases end latest, and later than `after`."""
    rows = transaction.query(_FIND_LEASES, (queue, after, limit))
    found = ((partition, try_decode(Job, body or b"")) for partition, body in rows)
    return [ClaimedJob((name or b"").decode(), job) for name, job in found if job is not None]


def end_leases(
    look_in: RunInTransaction, transact: Transact, queue: str, holder: str, now: Instant
) -> int:
    """Make a holder's leased jobs due again; return how many."""
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
    jobs = tx.get_many(Job, ids, for_update=True)
    leased = [job for job in jobs.values() if job.holder == holder and job.lease_until > now]
    for job in leased:
        tx.replace(evolve(job, lease_until=0, holder=""))
    return len(leased)
