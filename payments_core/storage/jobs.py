"""A job: a row that commits with the change that needs it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import attrs

from payments_core.clock import Instant
from payments_core.evolve import evolve
from payments_core.storage.records import Collection, Index, Record

NEVER: Instant = 2**53 - 1
"""A lease or a due time that never comes: how a job parks."""


def _upgrade_from_1(document: dict[str, Any]) -> dict[str, Any]:
    # SQLite writes the holder of a lease into a document without changing its schema.
    return {"holder": "", **document}


@attrs.frozen(kw_only=True, slots=False)
class Job(Record):
    """Work to do at `due_at`.

    `queue` begins with the mode, since a process claims only its own. Jobs of a `lane` must not
    run at the same time or starve others: a webhook endpoint, a Payment, a sender. `ordinal`
    orders jobs of a lane that fall due together. `claims` counts claims, and fences them.
    `holder` names the worker that has the lease, if it has a name that outlives its process.
    """

    collection: ClassVar[Collection] = Collection(
        "jobs",
        columns={
            "queue": str,
            "lane": str,
            "due_at": int,
            "ordinal": int,
            "lease_until": int,
            "claims": int,
        },
        indexes=(Index("by_queue_lane", key=("queue", "lane"), order=("due_at", "ordinal")),),
        schema=2,
        upgrades={1: _upgrade_from_1},
        oldest_reader=1,
    )

    queue: str
    lane: str
    kind: str
    due_at: Instant
    subject: str
    arguments: Mapping[str, str] = attrs.field(factory=dict)
    ordinal: int = 0
    lease_until: Instant = 0
    claims: int = 0
    failures: int = 0
    holder: str = ""


@attrs.frozen(kw_only=True, slots=False)
class ParkedJobMark(Record):
    """Says that a job was parked: only by it are parked jobs found without a look at all jobs.

    It is made with the job's version that is parked, and its id has that version: a job that is
    parked again has another mark. A job that runs again by any other way than a retry leaves its
    mark behind, which then names a version that is gone, and which the hourly purge deletes.
    """

    collection: ClassVar[Collection] = Collection(
        "parked_jobs",
        columns={"parked_at": int},
        indexes=(Index("newest", order=("parked_at",), descending=True),),
    )

    job_id: str
    job_version: int
    parked_at: Instant

    def is_of(self, job: Job | None) -> bool:
        """Whether the job is parked in the version that the mark names."""
        return job is not None and job.version == self.job_version and is_parked(job)


def is_parked(job: Job) -> bool:
    """Whether the job will never run again without an operator."""
    return NEVER in (job.due_at, job.lease_until)


def mark_id(job: Job) -> str:
    """The id of the mark of a stored job that is parked."""
    return f"{job.id}:{job.version}"


def mark_parked(job: Job, now: Instant) -> ParkedJobMark:
    """The mark of a job that is about to be replaced by `job`, which is parked."""
    stored = evolve(job, version=job.version + 1)
    return ParkedJobMark(
        id=mark_id(stored), job_id=job.id, job_version=stored.version, parked_at=now
    )


def require_holder(holder: str) -> None:
    """Raise ValueError for an empty name: most leases have it."""
    if not holder:
        raise ValueError("a holder of leases needs a name")
