"""Jobs that a mode has for ever, such as the scan of a chain: they are made and kept going here."""

from __future__ import annotations

from payments_core.clock import MAX_CLOCK_SKEW_MS
from payments_core.evolve import evolve
from payments_core.storage.jobs import NEVER, Job
from payments_core.storage.port import Transaction


def ensure_recurring(tx: Transaction, job: Job, longest_pause_ms: int) -> None:
    """Ensure that a job like `job`, whose `due_at` is now, runs at the latest after its longest
    pause.

    A parked job continues: the operator who starts a process has seen the alarm. One that is due
    later than its pause allows is due now: a clock that was ahead had postponed it.
    """
    stored = tx.get(Job, job.id, for_update=True)
    if stored is None:
        tx.insert(job)
    elif stored.lease_until == NEVER:
        tx.replace(evolve(stored, due_at=job.due_at, lease_until=0, claims=0))
    elif stored.due_at > job.due_at + longest_pause_ms + MAX_CLOCK_SKEW_MS:
        tx.replace(evolve(stored, due_at=job.due_at))
