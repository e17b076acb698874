"""The states of an account's verification (contract §5), and the pure steps through them."""

from __future__ import annotations

import attrs

from payments_core.accounts.record import Account, KycStatus
from payments_core.accounts.verification.record import Verification
from payments_core.clock import Instant
from payments_core.engine.state_machine import Machine, Transition

KYC = Machine(
    "verification",
    (
        Transition(None, "create", "not_started", why="Nobody has asked for a verification."),
        Transition(
            "not_started",
            "start",
            "pending",
            emits="account.updated",
            why="The provider has opened a case, and the user is to go there.",
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
            why="The provider knows who is behind the account.",
        ),
        Transition(
            "pending",
            "reject",
            "rejected",
            emits="account.updated",
            why="The provider would not vouch for the account; it may be tried again.",
        ),
    ),
    terminal=("approved",),
)

TOLD: tuple[KycStatus, ...] = ("pending", "approved", "rejected")
"""The statuses of a verification that the provider knows of."""

_DECISIONS: dict[KycStatus, str] = {"approved": "approve", "rejected": "reject"}

_STATUSES: dict[str, KycStatus] = {status: status for status in TOLD}


def stepped(
    account: Account, verification: Verification, trigger: str, *, now: Instant
) -> tuple[Account, Verification]:
    """The account and its newest verification after `trigger`. Raises InvalidState."""
    status = _STATUSES[KYC.step(account.kyc_status, trigger).target]
    decided = status != "pending"
    return (
        attrs.evolve(account, kyc_status=status, updated_at=now),
        attrs.evolve(
            verification,
            status=status,
            hosted_url=None if decided else verification.hosted_url,
            updated_at=now,
        ),
    )


def triggers_to(status: KycStatus, verification: Verification) -> tuple[str, ...]:
    """The steps that bring a verification to a status that the provider tells of."""
    decision = _DECISIONS.get(status)
    if verification.status == "not_started":
        return ("start", decision) if decision else ("start",)
    return (decision or "start",)
