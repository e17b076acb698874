"""The states of a bank transfer to an on-ramp, and the pure steps through them (contract §7)."""

from __future__ import annotations

from typing import Any

from payments_core.banks.incoming import IncomingStatus, IncomingTransfer
from payments_core.clock import Instant
from payments_core.engine.events import NewEvent
from payments_core.engine.state_machine import StateMachine, Transition, transitions_from
from payments_core.engine.step import Step
from payments_core.evolve import evolve
from payments_core.money import Atomic
from payments_core.onramps.record import (
    BOOK_ACCOUNTS,
    BankTransaction,
    BankTransactionStatus,
    EntryCause,
    FundingEntry,
    OnrampAccount,
)

_NOT_HERE: tuple[Any, ...] = (None, "scheduled")

BANK_TRANSACTION = StateMachine(
    "bank transaction",
    (
        Transition(
            None,
            "schedule",
            "scheduled",
            emits="bank_funding.scheduled",
            why="The bank expects the transfer; it has not settled.",
        ),
        *transitions_from(
            (*_NOT_HERE, "in_review"),
            "receive",
            "received",
            emits="bank_funding.received",
            why="The money is at the bank and may be used.",
        ),
        *transitions_from(
            (*_NOT_HERE, "received"),
            "review",
            "in_review",
            emits="bank_funding.in_review",
            why="The bank is reviewing the transfer, or the account cannot be credited now.",
        ),
        Transition(
            "received",
            "submit",
            "submitted",
            emits="bank_funding.submitted",
            why="The stablecoins were sent to the destination.",
        ),
        Transition(
            "submitted",
            "settle",
            "settled",
            emits="bank_funding.settled",
            why="The destination has the stablecoins, and the transfer is final.",
        ),
        Transition(
            "submitted",
            "fail_credit",
            "in_review",
            emits="bank_funding.in_review",
            why="The transfer of the stablecoins failed permanently; a new one is sent later.",
        ),
        Transition(
            "settled",
            "reverse_credit",
            "in_review",
            emits="bank_funding.in_review",
            why="A reorg beyond finality undid the credit, and it failed when it was sent again.",
        ),
        *transitions_from(
            (*_NOT_HERE, "in_review", "received"),
            "refund",
            "refunded",
            emits="bank_funding.refunded",
            why="The money was sent back to its sender.",
        ),
        *transitions_from(
            (*_NOT_HERE, "in_review"),
            "fail",
            "failed",
            emits="bank_funding.failed",
            why="The transfer was cancelled before it arrived.",
        ),
    ),
    terminal=("refunded", "failed"),
)

_STATUSES: dict[str, BankTransactionStatus] = {
    "scheduled": "scheduled",
    "received": "received",
    "in_review": "in_review",
    "submitted": "submitted",
    "settled": "settled",
    "refunded": "refunded",
    "failed": "failed",
}

_TRIGGERS: dict[IncomingStatus, str] = {
    "scheduled": "schedule",
    "in_review": "review",
    "received": "receive",
    "returned": "refund",
    "cancelled": "fail",
}

MICRO_DEPOSIT_CENTS = 1_00
"""An ACH credit below this checks that the account exists, and is never credited (Nacha Operating
Rules, "Micro-Entries", since 2022-09-16: ACH credits of less than 1 dollar)."""


def observe_new(
    id: str, onramp: OnrampAccount, incoming: IncomingTransfer, *, now: Instant
) -> Step[BankTransaction]:
    """A new transfer, in the state that the bank reports."""
    is_micro = incoming.rail == "ach_push" and incoming.amount_cents < MICRO_DEPOSIT_CENTS
    draft = BankTransaction(
        id=id,
        onramp_account_id=onramp.id,
        account_id=onramp.account_id,
        external_user_id=onramp.external_user_id,
        incoming_id=incoming.id,
        rail=incoming.rail,
        amount_cents=incoming.amount_cents,
        type="micro_deposit" if is_micro else "transfer",
        destination=onramp.destination,
        sender_name=incoming.sender_name,
        reference=incoming.reference,
        status="scheduled",
        status_version=0,
        expected_at_ms=incoming.expected_at_ms,
        api_version=onramp.api_version,
        created_at_ms=now,
        updated_at_ms=now,
    )
    return _take(draft, None, _TRIGGERS[incoming.status], incoming, now=now)


def observe(
    transaction: BankTransaction, incoming: IncomingTransfer, *, now: Instant
) -> Step[BankTransaction]:
    """The transaction after the bank's answer; unchanged if it shows nothing new.

    A transaction under our review is `received` at the bank: it waits for us.
    """
    trigger = _TRIGGERS[incoming.status]
    is_ours = transaction.held_at_ms is not None and incoming.status == "received"
    if is_ours or not BANK_TRANSACTION.allows(transaction.status, trigger):
        return Step(transaction)
    return _take(transaction, transaction.status, trigger, incoming, now=now)


def decide_delivery(transaction: BankTransaction, *, now: Instant) -> Step[BankTransaction]:
    """Decide that the transfer is credited: from now on it is never sent back."""
    step = _end_review(transaction, now=now)
    return evolve(step, record=evolve(step.record, disposition="deliver"))


def decide_refund(
    transaction: BankTransaction, reason: str, *, now: Instant
) -> Step[BankTransaction]:
    """Decide that the transfer is sent back: from now on it is never credited."""
    return Step(evolve(transaction, disposition="refund", reason=reason, updated_at_ms=now))


def hold(transaction: BankTransaction, reason: str, *, now: Instant) -> Step[BankTransaction]:
    """Received, and not to be credited now. A transaction already held stays as it is."""
    if transaction.held_at_ms is not None:
        return Step(transaction)
    return _change(
        transaction, transaction.status, "review", now=now, reason=reason, held_at_ms=now
    )


def begin_credit(
    transaction: BankTransaction, credit_id: str, *, now: Instant
) -> Step[BankTransaction]:
    """The stablecoins are in the escrow, and `credit_id` will bring them to the destination.

    After a failed credit they are already there, and its review ends.
    """
    step = _end_review(transaction, now=now)
    after = evolve(
        step.record, credit_id=credit_id, credits=step.record.credits + 1, updated_at_ms=now
    )
    if not after.books.bank:
        return evolve(step, record=after)
    posted = _post(after, "delivery", now=now, bank=-after.books.bank, escrow=after.books.bank)
    return Step(posted.record, step.events, (*step.entries, *posted.entries))


def hold_credit(
    transaction: BankTransaction, reason: str, *, now: Instant
) -> Step[BankTransaction]:
    """Screening has not cleared the destination of the credit, or has blocked it: it waits.

    The stablecoins are in the escrow, so only the credit ends the review.
    """
    if transaction.reason == reason:
        return Step(transaction)
    if transaction.status == "in_review":
        return Step(evolve(transaction, reason=reason, updated_at_ms=now))
    return hold(transaction, reason, now=now)


def end_hold(transaction: BankTransaction, *, now: Instant) -> Step[BankTransaction]:
    """Screening has cleared the destination of the credit."""
    return _end_review(transaction, now=now)


def submit(transaction: BankTransaction, hash: str, *, now: Instant) -> Step[BankTransaction]:
    """The credit was handed to the chain."""
    return _change(
        transaction, "received", "submit", now=now, transaction_hash=hash, submitted_at_ms=now
    )


def settle(transaction: BankTransaction, hash: str, *, now: Instant) -> Step[BankTransaction]:
    """The credit is final."""
    amount = transaction.amount_atomic
    return _change(
        transaction, "submitted", "settle", now=now, transaction_hash=hash, settled_at_ms=now
    ).then(_post, "credit", now=now, escrow=-amount, recipient=amount)


def fail_credit(
    transaction: BankTransaction, reason: str, *, now: Instant
) -> Step[BankTransaction]:
    """The credit failed permanently: the stablecoins are still in the escrow."""
    return _change(transaction, "submitted", "fail_credit", now=now, reason=reason, credit_id=None)


def reverse_credit(
    transaction: BankTransaction, reason: str, *, now: Instant
) -> Step[BankTransaction]:
    """The credit was final, was undone and failed: the stablecoins are in the escrow again."""
    amount = transaction.amount_atomic
    return _change(
        transaction,
        "settled",
        "reverse_credit",
        now=now,
        reason=reason,
        credit_id=None,
        settled_at_ms=None,
    ).then(_post, "credit_reorged", now=now, escrow=amount, recipient=-amount)


def _end_review(transaction: BankTransaction, *, now: Instant) -> Step[BankTransaction]:
    if transaction.status != "in_review":
        return Step(transaction)
    return _change(transaction, "in_review", "receive", now=now, reason=None, held_at_ms=None)


def _take(
    transaction: BankTransaction,
    status: str | None,
    trigger: str,
    incoming: IncomingTransfer,
    *,
    now: Instant,
) -> Step[BankTransaction]:
    """A step that the bank has reported, with the money that it moved."""
    amount = transaction.amount_atomic
    changes: dict[str, Any] = {"reason": incoming.reason or transaction.reason}
    if trigger == "receive":
        changes |= {"received_at_ms": incoming.received_at_ms or now, "reason": None}
    if trigger == "refund":
        changes["refunded_at_ms"] = now
    step = _change(transaction, status, trigger, now=now, **changes)
    if trigger == "receive" and not transaction.books.bank:
        return step.then(_post, "arrival", now=now, sender=-amount, bank=amount)
    if trigger == "refund" and transaction.books.bank:
        return step.then(_post, "refund", now=now, sender=amount, bank=-amount)
    return step


def _change(
    transaction: BankTransaction,
    status: str | None,
    trigger: str,
    *,
    now: Instant,
    **changes: Any,
) -> Step[BankTransaction]:
    row = BANK_TRANSACTION.step(status, trigger)
    assert row.emits is not None, "each step of a bank transfer must have an event"
    after = evolve(
        transaction,
        status=_STATUSES[row.target],
        status_version=transaction.status_version + 1,
        updated_at_ms=now,
        **changes,
    )
    payload = {
        "accountId": after.account_id,
        "onrampBankAccountId": after.onramp_account_id,
        "transactionId": after.id,
        "status": after.status,
        "statusVersion": after.status_version,
        "amount": format_cents(after.amount_cents),
    }
    event = NewEvent(
        row.emits, payload, after.api_version, after.account_id, after.external_user_id
    )
    return Step(after, (event,))


def _post(
    transaction: BankTransaction, /, cause: EntryCause, *, now: Instant, **amounts: int
) -> Step[BankTransaction]:
    books = evolve(
        transaction.books,
        **{name: getattr(transaction.books, name) + amount for name, amount in amounts.items()},
    )
    number = transaction.entries + 1
    entry = FundingEntry(
        id=f"{transaction.id}/{number:06}",
        transaction_id=transaction.id,
        number=number,
        cause=cause,
        postings={name: Atomic(amounts[name]) for name in BOOK_ACCOUNTS if amounts.get(name)},
        created_at_ms=now,
    )
    return Step(evolve(transaction, books=books, entries=number), (), (entry,))


def format_cents(amount_cents: int) -> str:
    """Dollars as text, for example 12.50."""
    dollars, cents = divmod(amount_cents, 100)
    return f"{dollars}.{cents:02d}"
