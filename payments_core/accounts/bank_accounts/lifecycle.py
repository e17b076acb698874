"""The states of a bank account, and the pure steps through them (contract §7)."""

from __future__ import annotations

from payments_core.accounts.bank_accounts.record import BankAccount, BankAccountStatus
from payments_core.banks.reviews import BankReview, BankReviewStatus
from payments_core.clock import Instant
from payments_core.engine.events import NewEvent
from payments_core.engine.state_machine import StateMachine, Transition
from payments_core.engine.step import Step
from payments_core.evolve import evolve

BANK_ACCOUNT = StateMachine(
    "bank account",
    (
        Transition(
            None,
            "create",
            "pending",
            emits="bank_account.created",
            why="The bank account was added, and the bank reviews it.",
        ),
        Transition(
            "pending",
            "approve",
            "active",
            emits="bank_account.updated",
            why="The bank approved the bank account for payouts.",
        ),
        Transition(
            "pending",
            "reject",
            "rejected",
            emits="bank_account.updated",
            why="The bank rejected the bank account; a corrected one can be added.",
        ),
    ),
    terminal=("active", "rejected"),
)

_STATUSES: dict[str, BankAccountStatus] = {
    "pending": "pending",
    "active": "active",
    "rejected": "rejected",
}
_DECISIONS: dict[BankReviewStatus, str] = {"active": "approve", "rejected": "reject"}


def create(bank_account: BankAccount) -> Step[BankAccount]:
    """A bank account that was added."""
    return _take(bank_account, None, "create")


def apply_review(
    bank_account: BankAccount, review: BankReview, *, now: Instant
) -> Step[BankAccount]:
    """The bank account after the bank's review; unchanged if the bank has not decided."""
    if review.status == "pending":
        return Step(bank_account)
    decided = evolve(bank_account, reason=review.reason, updated_at_ms=now)
    return _take(decided, bank_account.status, _DECISIONS[review.status])


def _take(bank_account: BankAccount, status: str | None, trigger: str) -> Step[BankAccount]:
    row = BANK_ACCOUNT.step(status, trigger)
    after = evolve(bank_account, status=_STATUSES[row.target])
    payload = {
        "accountId": after.account_id,
        "bankAccountId": after.id,
        "status": after.status,
    }
    event = NewEvent(
        row.emits or "", payload, after.api_version, after.account_id, after.external_user_id
    )
    return Step(after, (event,))
