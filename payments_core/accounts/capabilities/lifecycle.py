"""The states of a capability, and the pure steps through them (contract §7)."""

from __future__ import annotations

from payments_core.accounts.capabilities.record import CapabilityActivation, CapabilityStatus
from payments_core.accounts.record import Account
from payments_core.banks.reviews import BankReview, BankReviewStatus
from payments_core.clock import Instant
from payments_core.engine.events import NewEvent
from payments_core.engine.state_machine import StateMachine, Transition, transitions_from
from payments_core.engine.step import Step
from payments_core.evolve import evolve

_EVENT = "account.capability_updated"

CAPABILITY = StateMachine(
    "capability",
    (
        Transition(None, "create", "inactive", why="Nobody has requested the capability."),
        *transitions_from(
            ("inactive", "rejected"),
            "activate",
            "action_required",
            emits=_EVENT,
            why="The account's verification must be approved first.",
        ),
        *transitions_from(
            ("inactive", "rejected", "action_required"),
            "request",
            "pending",
            emits=_EVENT,
            why="The account is verified, and the bank reviews the request.",
        ),
        Transition(
            "pending", "approve", "active", emits=_EVENT, why="The bank approved the request."
        ),
        Transition(
            "pending",
            "reject",
            "rejected",
            emits=_EVENT,
            why="The bank rejected the request; a new request can be made.",
        ),
        Transition(
            "pending",
            "withhold",
            "suspended",
            emits=_EVENT,
            why="The bank approved the request, and the account is suspended or closed.",
        ),
        Transition(
            "active",
            "suspend",
            "suspended",
            emits=_EVENT,
            why="The account was suspended or closed.",
        ),
        Transition(
            "suspended", "resume", "active", emits=_EVENT, why="The account is active again."
        ),
    ),
    terminal=(),
)

_STATUSES: dict[str, CapabilityStatus] = {
    "inactive": "inactive",
    "action_required": "action_required",
    "pending": "pending",
    "active": "active",
    "rejected": "rejected",
    "suspended": "suspended",
}


_DECISIONS: dict[BankReviewStatus, str] = {"active": "approve", "rejected": "reject"}


def activate(
    activation: CapabilityActivation, account: Account, *, now: Instant
) -> Step[CapabilityActivation]:
    """The capability after a request: at the bank, or first at the KYC provider.

    Raises InvalidState if it was already requested.
    """
    trigger = "request" if account.kyc_status == "approved" else "activate"
    fresh = evolve(activation, attempt=activation.attempt + 1, hosted_url=None, reason=None)
    return _take(fresh, account, trigger, now=now)


def apply_review(
    activation: CapabilityActivation, account: Account, review: BankReview, *, now: Instant
) -> Step[CapabilityActivation]:
    """The capability after the bank's review, which belongs to its present request."""
    step = Step(activation)
    if activation.status == "action_required":
        step = step.then(_take, account, "request", now=now)
    if review.status == "pending":
        return evolve(step, record=evolve(step.record, hosted_url=review.hosted_url))
    decided = evolve(step.record, hosted_url=None, reason=review.reason)
    trigger = _DECISIONS[review.status]
    if trigger == "approve" and account.status != "active":
        trigger = "withhold"
    return evolve(step, record=decided).then(_take, account, trigger, now=now)


def follow_account(
    activation: CapabilityActivation, account: Account, *, now: Instant
) -> Step[CapabilityActivation]:
    """The capability after its account was suspended, closed, or made active again.

    A capability that is not active yet is unchanged: the account's status is checked later.
    """
    trigger = "resume" if account.status == "active" else "suspend"
    if not CAPABILITY.allows(activation.status, trigger):
        return Step(activation)
    return _take(activation, account, trigger, now=now)


def _take(
    activation: CapabilityActivation, account: Account, trigger: str, *, now: Instant
) -> Step[CapabilityActivation]:
    row = CAPABILITY.step(activation.status, trigger)
    after = evolve(activation, status=_STATUSES[row.target], updated_at_ms=now)
    payload = {
        "accountId": account.id,
        "capability": after.capability,
        "status": after.status,
    }
    event = NewEvent(_EVENT, payload, after.api_version, account.id, account.external_user_id)
    return Step(after, (event,))
