"""Jobs that were parked: which they are, and how one is put back to work.

A job parks after many claims without an outcome, or when its handler gave it up: it has a lease or
a due time that never comes (`jobs/parking.py`), and nobody looks at it again without being told.
"""

from __future__ import annotations

import attrs

from payments_core.clock import Clock
from payments_core.engine.committer import Ledger
from payments_core.engine.decision import Decision, Scope
from payments_core.engine.identifiers import Draw
from payments_core.errors import Conflicting, NotFound
from payments_core.storage.jobs import FOREVER, Job
from payments_core.storage.port import Storage, Transaction
from payments_core.storage.wholesale import every


@attrs.frozen
class Parked:
    """A parked job, and the partition that it lies in."""

    partition: str
    job: Job


def parked(storage: Storage, mode: str) -> tuple[Parked, ...]:
    """The parked jobs of a mode, in every partition. Raises NotWholesale, StorageUnavailable.

    One that cannot be read is missing, with an alarm.
    """
    return tuple(
        Parked(found.partition, found.record)
        for found in every(storage, Job)
        if found.record.queue.startswith(f"{mode}.") and is_parked(found.record)
    )


def is_parked(job: Job) -> bool:
    """Whether nothing will ever happen to the job by itself."""
    return FOREVER in (job.due_at, job.lease_until)


def retry(ledger: Ledger, clock: Clock, partition: str, job_id: str) -> Job:
    """Make a parked job due at once, with all its claims before it.

    What it did before it parked it may do again: every handler bears that. Raises NotFound,
    and Conflicting for a job that is not parked, which its worker would lose.
    """
    now = clock.now()

    def decide(tx: Transaction, draw: Draw) -> Decision[Job]:
        job = tx.get(Job, job_id, for_update=True)
        if job is None:
            raise NotFound("job")
        freed = attrs.evolve(job, due_at=now, lease_until=0, claims=0)
        if attrs.evolve(freed, version=0) == attrs.evolve(job, version=0):
            return Decision(job)  # by a run whose COMMIT was not answered
        if not is_parked(job):
            raise Conflicting(f"The job {job_id} is not parked.")
        return Decision(freed, replaces=(freed,))

    return ledger.commit(Scope(partition, "upkeep"), decide)
