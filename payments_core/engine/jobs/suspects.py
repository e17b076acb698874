"""Jobs that may have ended their process, which run one at a time.

A job that is claimed again and again without an outcome may take its process down each time. Jobs
claimed with it get no outcome either, and would be parked with it.
"""

from __future__ import annotations

from collections.abc import Sequence

from payments_core.clock import SECOND
from payments_core.storage.port import ClaimedJob

CLAIMS_BEFORE_ALONE = 3
"""A job that was claimed more often without an outcome is a suspect."""

ALONE_PAUSE_MS = 1 * SECOND
"""How long suspects wait while another one runs."""


def is_suspect(claimed: ClaimedJob) -> bool:
    """Whether the job may have ended its process."""
    return claimed.job.claims > CLAIMS_BEFORE_ALONE


def find_suspects_to_wait(
    claimed: Sequence[ClaimedJob], *, is_one_running: bool
) -> Sequence[ClaimedJob]:
    """The suspects that wait until another one has ended: all except the least suspect, which is
    run unless one is already running."""
    suspects = sorted(filter(is_suspect, claimed), key=lambda item: item.job.claims)
    return suspects if is_one_running else suspects[1:]
