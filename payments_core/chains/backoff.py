"""How a job waits for a chain or a bank: briefly if not final, longer without an answer."""

from __future__ import annotations

import logging

from payments_core.clock import MINUTE, SECOND, Instant
from payments_core.engine.decision import Decision
from payments_core.storage.jobs import Job

POLL_MS = 1 * SECOND
REORG_RECHECK_MS = 10 * SECOND
"""How long until a job checks again whether a scan has passed its final block."""

MAX_BACKOFF_MS = 1 * MINUTE
ALARM_AFTER_FAILURES = 10

_log = logging.getLogger(__name__)


def poll_again(now: Instant) -> Decision[None]:
    """Check again soon: the chain answered, but the result is not final."""
    return Decision(None, next_run_at=now + POLL_MS)


def back_off(job: Job, now: Instant, what: str = "chain") -> Decision[None]:
    """Check again after a pause that doubles with each missing answer, up to a minute.

    A silent chain never parks a job: a sent transfer must be followed when the chain answers again.
    """
    if job.failures >= ALARM_AFTER_FAILURES and job.failures % ALARM_AFTER_FAILURES == 0:
        _log.error(
            "ALARM: %s of %s: the %s did not answer %d times",
            job.kind,
            job.subject,
            what,
            job.failures,
        )
    pause_ms = min(POLL_MS << min(job.failures, 16), MAX_BACKOFF_MS)
    return Decision(None, next_run_at=now + pause_ms, made_no_progress=True)
