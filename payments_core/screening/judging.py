"""The judgement of a transfer by the verdicts of whom it concerns. Pure.

An operator's verdict comes first, then the provider's while it counts. A transfer may be signed
only if each verdict is clear.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal

import attrs

from payments_core.clock import Instant
from payments_core.evolve import evolve
from payments_core.networks import Asset
from payments_core.screening.port import (
    Direction,
    ScreeningRequest,
    Subject,
    Verdict,
)
from payments_core.screening.record import ScreeningVerdict
from payments_core.storage.jobs import NEVER
from payments_core.storage.port import Snapshot

Finding = Literal["clear", "review", "blocked", "silent"]
"""What is known of a transfer: `silent` if the provider did not answer for somebody."""

Decided = Literal["clear", "blocked"]
"""What an operator decides."""

BlockedReason = Literal["destination_blocked", "sender_blocked"]


@attrs.frozen
class Concern:
    """A subject that a transfer comes from or goes to."""

    subject: Subject
    direction: Direction

    @property
    def key(self) -> str:
        """The one text for it."""
        return f"{self.direction}:{self.subject.key}"


@attrs.frozen(kw_only=True)
class ScreenedTransfer:
    """A transfer that is screened before it is signed: whom it concerns, and how much it moves.

    `resource` is the id for which an operator decides, and `owner` the id of what names the
    transfer. `is_held` says that an earlier look has held it. `read_more` reads whom it concerns
    besides, if its record does not have all of them.
    """

    resource: str
    owner: str
    asset: Asset
    amount_atomic: int
    concerns: tuple[Concern, ...]
    is_held: bool = False
    read_more: Callable[[Snapshot], tuple[Concern, ...]] | None = None

    def complete(self, snapshot: Snapshot) -> ScreenedTransfer:
        """The transfer with all whom it concerns."""
        if self.read_more is None:
            return self
        concerns = dict.fromkeys((*self.concerns, *self.read_more(snapshot)))
        return evolve(self, concerns=tuple(concerns), read_more=None)


@attrs.frozen(kw_only=True)
class Judgement:
    """The finding of a transfer; `concern` and `verdict` are those that stop it."""

    finding: Finding
    concern: Concern | None = None
    verdict: ScreeningVerdict | None = None

    @property
    def blocked_reason(self) -> BlockedReason:
        """Who is blocked, as the failure of the transfer's owner says it."""
        is_sender = self.concern is not None and self.concern.direction == "in"
        return "sender_blocked" if is_sender else "destination_blocked"


CLEAR = Judgement(finding="clear")
_WORST_FIRST: tuple[Finding, ...] = ("blocked", "review", "silent")


def pay_out(chain_id: int, address: str) -> Concern:
    """The destination of a transfer on a chain."""
    return Concern(Subject(kind="address", reference=address, chain_id=chain_id), "out")


def paid_in(chain_id: int, address: str) -> Concern:
    """The sender of funds that a transfer passes on."""
    return Concern(Subject(kind="address", reference=address, chain_id=chain_id), "in")


def decision_id(resource: str, concern: Concern) -> str:
    """The id of an operator's verdict: of one subject, in one direction, for one resource."""
    return f"{resource}:{concern.key}"


def list_decision_ids(transfer: ScreenedTransfer) -> list[str]:
    """The ids of an operator's verdicts that concern the transfer."""
    return [decision_id(transfer.resource, concern) for concern in transfer.concerns]


def find_verdict(
    transfer: ScreenedTransfer,
    concern: Concern,
    stored: Mapping[str, ScreeningVerdict],
    *,
    now: Instant,
) -> ScreeningVerdict | None:
    """The verdict that counts now; None if the provider must be asked."""
    decided = stored.get(decision_id(transfer.resource, concern))
    if decided is not None:
        return decided
    known = stored.get(concern.subject.key)
    return known if known is not None and now < known.valid_until_ms else None


def judge(verdicts: Mapping[Concern, ScreeningVerdict | None]) -> Judgement:
    """The finding of a transfer by the verdicts of all whom it concerns, None without an answer."""
    found = [
        Judgement(
            finding="silent" if verdict is None else verdict.outcome,
            concern=concern,
            verdict=verdict,
        )
        for concern, verdict in verdicts.items()
    ]
    for finding in _WORST_FIRST:
        for one in found:
            if one.finding == finding:
                return one
    return CLEAR


def make_request(key: str, transfer: ScreenedTransfer, concern: Concern) -> ScreeningRequest:
    """What the provider is asked; `key` names the transfer."""
    return ScreeningRequest(
        key=f"{key}/{concern.direction}/{concern.subject.key}",
        subject=concern.subject,
        direction=concern.direction,
        amount_atomic=transfer.amount_atomic,
        asset=transfer.asset,
    )


def make_verdict(
    subject: Subject, answer: Verdict, known: ScreeningVerdict | None, *, now: Instant
) -> ScreeningVerdict:
    """An answer as it is stored, in place of the verdict that is `known`."""
    if known is not None:
        return evolve(
            known,
            outcome=answer.outcome,
            case=answer.case,
            reason=answer.reason,
            valid_until_ms=answer.valid_until_ms,
            updated_at_ms=now,
        )
    return ScreeningVerdict(
        id=subject.key,
        outcome=answer.outcome,
        case=answer.case,
        reason=answer.reason,
        valid_until_ms=answer.valid_until_ms,
        created_at_ms=now,
        updated_at_ms=now,
    )


def to_verdict(stored: ScreeningVerdict) -> Verdict:
    """What the provider has said, as it was stored."""
    return Verdict(
        outcome=stored.outcome,
        case=stored.case,
        valid_until_ms=stored.valid_until_ms,
        reason=stored.reason,
    )


def decide_by_hand(
    resource: str, concern: Concern, known: ScreeningVerdict | None, *,
    outcome: Decided, operator: str, now: Instant,
) -> ScreeningVerdict:  # fmt: skip
    """An operator's verdict, in place of the one that is `known`."""
    made = known or ScreeningVerdict(
        id=decision_id(resource, concern),
        outcome=outcome,
        valid_until_ms=NEVER,
        created_at_ms=now,
        updated_at_ms=now,
    )
    return evolve(made, outcome=outcome, decided_by=operator, updated_at_ms=now)
