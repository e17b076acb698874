"""A screening provider that judges an address by its last digits, for the sandbox."""

from __future__ import annotations

from collections.abc import Callable

from payments_core.clock import HOUR, Clock
from payments_core.screening.port import (
    Outcome,
    ScreeningRequest,
    ScreeningUnavailable,
    Verdict,
)

BLOCKED_ENDING = "b10c"
REVIEWED_ENDING = "4e71"

CLEAR_FOR_MS = 1 * HOUR

_REASONS: dict[Outcome, str | None] = {
    "clear": None,
    "review": f"the sandbox reviews what ends in {REVIEWED_ENDING}",
    "blocked": f"the sandbox blocks what ends in {BLOCKED_ENDING}",
}


class SimulatedScreening:
    """Blocks references that end in `b10c`, in any form of letters, and reviews those in `4e71`.

    It keeps nothing, and never ends a review: an operator does. A clear verdict counts for an hour,
    the others are asked for again each time. `fails` is called before each answer; if it is true,
    the provider does not answer.
    """

    def __init__(self, clock: Clock, fails: Callable[[], bool] = lambda: False) -> None:
        self._clock = clock
        self._fails = fails

    def screen(self, request: ScreeningRequest) -> Verdict:
        """See Screening."""
        if self._fails():
            raise ScreeningUnavailable("the sandbox makes this call fail")
        outcome, now = _judge(request.subject.reference.lower()), self._clock.now()
        return Verdict(
            outcome=outcome,
            case=None if outcome == "clear" else f"simulated_{request.subject.key}",
            valid_until_ms=now + CLEAR_FOR_MS if outcome == "clear" else now,
            reason=_REASONS[outcome],
        )


def _judge(reference: str) -> Outcome:
    if reference.endswith(BLOCKED_ENDING):
        return "blocked"
    return "review" if reference.endswith(REVIEWED_ENDING) else "clear"
