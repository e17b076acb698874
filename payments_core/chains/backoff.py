"""How a job waits for a chain: briefly for what is not final, longer for one that is silent."""

from __future__ import annotations

import logging

from payments_core.clock import MINUTE, SECOND, Instant
from payments_core.engine.decision import Decision
from payments_core.storage.jobs import Job

POLL_MS = 1 * SECOND
OVERSIGHT_MS = 10 * SECOND
"""How long until it is asked again whether a scan has passed what is final."""

LONGEST_SILENCE_MS = 1 * MINUTE
ALARM_AFTER = 10

_log = logging.getLogger(__name__)


def poll_again(now: Instant) -> Decision[None]:
    """Look again soon: the chain answered, and it is not yet time."""
    return Decision(None, again_at=now + POLL_MS)


def wait_for_chain(job: Job, now: Instant) -> Decision[None]:
    """Look again after a pause that doubles with each silence, up to a minute.

    A silent chain never parks a job: what was sent must be followed when it speaks again.
    """
    if job.failures >= ALARM_AFTER and job.failures % ALARM_AFTER == 0:
        _log.error("ALARM: %s of %s: no answer %d times", job.kind, job.subject, job.failures)
    pause_ms = min(POLL_MS << min(job.failures, 16), LONGEST_SILENCE_MS)
    return Decision(None, again_at=now + pause_ms, in_vain=True)
