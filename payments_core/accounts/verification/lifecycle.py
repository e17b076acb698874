"""The states of an account's verification (contract §5), and the pure steps through them."""

from __future__ import annotations

from collections.abc import Mapping

from payments_core.accounts.events import account_event
from payments_core.accounts.record import Account, KycStatus
from payments_core.accounts.verification.record import Verification
from payments_core.clock import Instant
from payments_core.engine.state_machine import StateMachine, Transition
from payments_core.engine.step import Step
from payments_core.evolve import evolve

VERIFICATION = StateMachine(
    "verification",
    (
        Transition(None, "create", "not_started", why="No verification has been requested."),
        Transition(
            "not_started",
            "start",
            "pending",
            emits="account.updated",
            why="The provider has opened a case; the user continues at the provider.",
        ),
        Transition(
            "rejected",
            "start",
            "pending",
            emits="account.updated",
            why="A new verification was started after one that was rejected.",
        ),
        Transition(
            "pending",
            "approve",
            "approved",
            emits="account.updated",
            why="The provider confirmed the account's identity.",
        ),
        Transition(
            "pending",
            "reject",
            "rejected",
            emits="account.updated",
            why="The provider rejected the account; a new verification may be started.",
        ),
    ),
    terminal=("approved",),
    actions={"approve": "change to approved", "reject": "change to rejected"},
)

PROVIDER_STATUSES: tuple[KycStatus, ...] = ("pending", "approved", "rejected")
"""The statuses of a verification that the provider knows."""

DECISIONS: Mapping[KycStatus, str] = {"approved": "approve", "rejected": "reject"}
"""The decisions of a provider, and their triggers."""

_STATUSES: dict[str, KycStatus] = {status: status for status in PROVIDER_STATUSES}


def apply_trigger(verification: Verification, trigger: str, *, now: Instant) -> Step[Verification]:
    """The verification after `trigger`. Raises InvalidState."""
    status = _STATUSES[VERIFICATION.step(verification.status, trigger).target]
    after = evolve(
        verification,
        status=status,
        hosted_url=verification.hosted_url if status == "pending" else None,
        updated_at_ms=now,
    )
    return Step(after)


def follow(
    account: Account, verification: Verification, api_version: str, *, now: Instant
) -> Step[Account]:
    """The account with the status of its newest verification, in one event for all its steps."""
    after = evolve(account, kyc_status=verification.status, updated_at_ms=now)
    return Step(after, (account_event("account.updated", after, api_version),))


def triggers_to(status: KycStatus, verification: Verification) -> tuple[str, ...]:
    """The steps that bring a verification to a status that the provider reports."""
    decision = DECISIONS.get(status)
    if verification.status == "not_started":
        return ("start", decision) if decision else ("start",)
    return (decision or "start",)
