"""The checks of jobs: whether a worker runs them, and whether some are parked."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from payments_core.background_jobs import QUEUES
from payments_core.clock import SECOND, Instant
from payments_core.engine.jobs.leases import find_impossible
from payments_core.maintenance.parked_jobs import list_parked_jobs
from payments_core.service import PaymentsService
from payments_core.storage.maintenance import MaintenanceAccess
from payments_core.storage.port import Storage
from payments_core_http.deployment.findings import Finding

MAX_NAMED_JOBS = 20


def check_queues(
    service: PaymentsService, mode: str, now: Callable[[PaymentsService], Instant]
) -> Iterator[Finding]:
    """Whether a worker runs the jobs: none waits for longer than its queue allows."""

    def read_clock() -> Instant:
        service.refresh()
        return now(service)

    storage = service.parts.ports.storage
    for queue in QUEUES:
        judged_at = read_clock()
        due = storage.next_due(queue.full_name(mode))
        late_ms = 0 if due is None else judged_at - due
        held = find_impossible(storage, queue, mode, judged_at, read_clock)
        if late_ms > queue.run_limit_ms + queue.lease_ms:
            says = f"a job of the queue {queue.name} has been due for {late_ms // SECOND} s"
            remedy = "is a worker running? Is the job parked (`payments admin jobs parked`)?"
            yield Finding("worker", "fault", says, remedy)
        elif held:
            ahead_s = (held[0].job.lease_until - judged_at) // SECOND
            says = f"{len(held)} jobs of the queue {queue.name} are leased for up to {ahead_s} s"
            remedy = "a machine's clock was ahead; a worker whose clock is right ends the leases"
            yield Finding("worker", "fault", says, remedy)
        else:
            yield Finding("worker", "ok", f"no job of the queue {queue.name} is late")


def check_parked(storage: Storage, mode: str) -> Iterator[Finding]:
    """Which jobs are parked: no worker runs one again before somebody retries it."""
    if not isinstance(storage, MaintenanceAccess):
        return
    found = list_parked_jobs(storage, mode)
    for one in found[:MAX_NAMED_JOBS]:
        says = f"the job {one.job.kind} of {one.job.subject} is parked, and what needs it waits"
        retry = f"`payments admin jobs retry {one.partition} {one.job.id}`"
        yield Finding("jobs", "warning", says, f"find the cause in the log, then {retry}")
    more = len(found) - MAX_NAMED_JOBS
    if more > 0:
        says = f"{more} more jobs are parked"
        yield Finding("jobs", "warning", says, "`payments admin jobs parked` lists all")
    if not found:
        yield Finding("jobs", "ok", "no job is parked")
