"""The jobs that wait for a bank's review, and when they check again."""

from __future__ import annotations

from payments_core.clock import HOUR, MINUTE, Instant
from payments_core.engine.decision import NewJob
from payments_core.storage.jobs import Job

REVIEW_CAPABILITIES = "capabilities.review"
LOOK_AT_CAPABILITIES = "capabilities.look"
MIN_REVIEW_POLL_MS = 1 * MINUTE
MAX_REVIEW_POLL_MS = 1 * HOUR


def review_job(partition: str, account_id: str, now: Instant) -> NewJob:
    """The job that brings an account's capabilities to the bank."""
    return NewJob("timers", REVIEW_CAPABILITIES, f"bank:{partition}", now, account_id)


def look_job(mode: str, kind: str, partition: str, subject: str, now: Instant) -> Job:
    """The one job for a notice of the bank about a review: its id follows from the subject's."""
    return Job(
        id=f"{mode}:{kind}:{subject}",
        queue=f"{mode}.timers",
        lane=f"bank:{partition}",
        kind=kind,
        due_at=now,
        subject=subject,
    )


def next_review_at(asked_at: Instant, now: Instant) -> Instant:
    """When to check again: after a minute at first, then less and less often."""
    waited = (now - asked_at) // 4
    return now + min(max(waited, MIN_REVIEW_POLL_MS), MAX_REVIEW_POLL_MS)
