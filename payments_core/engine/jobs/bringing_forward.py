"""A job that is due now, since something was heard of its subject."""

from __future__ import annotations

from payments_core.clock import Instant
from payments_core.engine.decision import Decision
from payments_core.evolve import evolve
from payments_core.storage.jobs import NEVER, Job
from payments_core.storage.port import Transaction


def bring_forward(tx: Transaction, job: Job, now: Instant) -> Decision[None] | None:
    """The job for a notice's subject, due now; None while it runs, since it may look too early.

    A job that is not there is inserted.
    """
    known = tx.get(Job, job.id, for_update=True)
    if known is None:
        return Decision(None, inserts=(job,))
    return bring_known_forward(known, now)


def bring_known_forward(known: Job, now: Instant) -> Decision[None] | None:
    """A locked job, due now; None while it runs, since it may look too early."""
    if known.lease_until == NEVER:  # parked: it looks at the bank when an operator resumes it
        return Decision(None)
    if known.lease_until > now:
        return None
    if known.due_at <= now:
        return Decision(None)
    return Decision(None, replaces=(evolve(known, due_at=now),))
