"""A screening provider in the process: it says what a test decides, and signs what it reports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from payments_core.clock import HOUR, Clock
from payments_core.notices.port import ProviderNotice
from payments_core.screening.port import (
    Outcome,
    ScreeningRequest,
    ScreeningUnavailable,
    Verdict,
)
from tests.service.notices.office import Office

CLEAR_FOR_MS = 1 * HOUR


class Desk:
    """Clears everybody but those in `says`, by their reference. `asked` has each request."""

    name = "desk"

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.says: dict[str, Outcome] = {}
        self.asked: list[ScreeningRequest] = []
        self.is_down = False
        self.valid_for_ms = CLEAR_FOR_MS

    def screen(self, request: ScreeningRequest) -> Verdict:
        self.asked.append(request)
        if self.is_down:
            raise ScreeningUnavailable("no answer")
        outcome = self.says.get(request.subject.reference, "clear")
        now = self.clock.now()
        return Verdict(
            outcome=outcome,
            case=None if outcome == "clear" else case_of(request.subject.reference),
            valid_until_ms=now + self.valid_for_ms if outcome == "clear" else now,
            reason=None if outcome == "clear" else f"listed as {outcome}",
        )

    @property
    def references(self) -> list[str]:
        """Whom it was asked for, in this order."""
        return [request.subject.reference for request in self.asked]

    def read_notices(self, headers: Mapping[str, str], body: bytes) -> Sequence[ProviderNotice]:
        return Office().read_notices(headers, body)


def case_of(reference: str) -> str:
    """The desk's case of a subject."""
    return f"case-{reference}"
