"""Parked jobs: listed, and retried.

A job is parked after many claims without an outcome, or when its handler gives it up: it has a
lease or a due time that never comes (`jobs/parking.py`), and no worker runs it again until an
operator retries it.
"""

from __future__ import annotations

import attrs

from payments_core.engine.audit import Trace
from payments_core.engine.decision import Decision, WorkerAuthority
from payments_core.engine.identifiers import IdSequence
from payments_core.engine.ports import Ports
from payments_core.errors import NotFound, ResourceConflict
from payments_core.evolve import evolve
from payments_core.storage.jobs import Job, ParkedJobMark, is_parked, mark_id
from payments_core.storage.maintenance import scan_all
from payments_core.storage.port import Snapshot, Storage, Transaction

MARKS_AT_ONCE = 200


@attrs.frozen
class ParkedJob:
    """A parked job, and its partition."""

    partition: str
    job: Job


def list_parked_jobs(storage: Storage, mode: str) -> tuple[ParkedJob, ...]:
    """The parked jobs of a mode, in every partition. Raises NoMaintenanceAccess,
    StorageUnavailable.

    A job that cannot be read is skipped with an alarm.
    """
    return tuple(
        ParkedJob(found.partition, found.record)
        for found in scan_all(storage, Job)
        if found.record.queue.startswith(f"{mode}.") and is_parked(found.record)
    )


def retry(ports: Ports, partition: str, job_id: str) -> Job:
    """Make a parked job due at once, with all its claims before it.

    It may repeat what it did before it was parked: every handler supports that. Raises NotFound,
    and ResourceConflict for a job that is not parked, which its worker would lose.
    """
    now = ports.clock.now()

    def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[Job]:
        job = tx.get(Job, job_id, for_update=True)
        if job is None:
            raise NotFound("job")
        freed = evolve(job, due_at=now, lease_until=0, claims=0)
        if evolve(freed, version=0) == evolve(job, version=0):
            return Decision(job)  # by a run whose COMMIT was not answered
        if not is_parked(job):
            raise ResourceConflict(f"The job {job_id} is not parked.")
        mark = tx.get(ParkedJobMark, mark_id(job), for_update=True)
        return Decision(freed, replaces=(freed,), deletes=() if mark is None else (mark,))

    trace = Trace(ports.host, "jobs.retry", own_id=job_id)
    return ports.committer.commit(WorkerAuthority(partition, "upkeep", trace), decide)


class ParkedMarkPurge:
    """Deletes the marks of jobs that run again by another way than a retry: a step of the hourly
    purge."""

    def __init__(self, ports: Ports) -> None:
        self._storage = ports.storage
        self._committer = ports.committer

    def run(self, partition: str) -> bool:
        """Delete the old ones of the newest marks; True if there may be more."""

        def find_old(snapshot: Snapshot) -> tuple[list[str], bool]:
            page = snapshot.find(ParkedJobMark, "newest", limit=MARKS_AT_ONCE, skip_damaged=True)
            marks = page.records
            jobs = snapshot.get_many(Job, [one.job_id for one in marks]) if marks else {}
            # A version that is gone never comes back, so what is old stays so.
            old = [one.id for one in marks if not one.is_of(jobs.get(one.job_id))]
            return old, bool(old) and page.next is not None

        old, has_more = self._storage.read(partition, find_old)

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[None]:
            stored = tx.get_many(ParkedJobMark, old, for_update=True)
            return Decision(None, deletes=tuple(stored.values()))

        if old:
            self._committer.commit(WorkerAuthority(partition, "upkeep"), decide)
        return has_more
