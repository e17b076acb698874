"""The states of a payout, and its pure steps together with its Payment (contract §6 and §7).

The funds of a payout go from the vault to the off-ramp address, from there to the bank,
and from the bank to the recipient. If the bank refuses or returns it, they are at the off-ramp
address again: for another payout, or for a refund to the vault.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from payments_core.banks.payouts import BankPayout
from payments_core.clock import DAY, HOUR, MINUTE, Instant
from payments_core.engine.state_machine import StateMachine, Transition, transitions_from
from payments_core.engine.step import Step
from payments_core.evolve import evolve
from payments_core.money import ZERO
from payments_core.payments import lifecycle as payments
from payments_core.payments import screening
from payments_core.payments.record import Payment, Payout, payout_key

PAYOUT = StateMachine(
    "payout",
    (
        Transition(
            None,
            "create",
            "created",
            why="The vault's funds are reserved, and the payout's key at the bank is stored.",
        ),
        Transition("created", "submit", "submitted", why="The bank has accepted the payout."),
        Transition(
            "created",
            "fail",
            "failed",
            why="The bank refused the payout, or the funds did not reach the off-ramp address.",
        ),
        Transition("created", "cancel", "cancelled", why="The Payment was cancelled."),
        Transition("submitted", "settle", "settled", why="The recipient's bank has the funds."),
        *transitions_from(
            ("submitted", "settled"),
            "return",
            "returned",
            why="The recipient's bank sent the funds back.",
        ),
    ),
    terminal=("failed", "cancelled", "returned"),
)

MIN_LOOK_MS = 1 * MINUTE
MAX_LOOK_MS = 1 * HOUR
"""A payout that has not settled is checked after a minute, then less and less often."""

MIN_LATE_LOOK_MS = 1 * HOUR
MAX_LATE_LOOK_MS = 1 * DAY
LATE_LOOKS_MS = 75 * DAY
"""A settled payout is checked at least daily for sixty days (`banks.return_codes`) and two
weeks. A return without a deadline (R06) may come even later: a notice of the bank reports it."""


def new_payout(partition: str, payment_id: str, attempt: int, **given: Any) -> Payout:
    """A payout before any request to the bank."""
    row = PAYOUT.step(None, "create")
    key = payout_key(partition, payment_id, attempt)
    return Payout(key=key, attempt=attempt, status=row.target, **given)


def retry_payout(partition: str, payment: Payment, *, funded_at: Instant | None) -> Payout:
    """A payout like the ended one, under a new key."""
    ended = require_payout(payment)
    return new_payout(
        partition,
        payment.id,
        ended.attempt + 1,
        bank_account_id=ended.bank_account_id,
        rail=ended.rail,
        amount_cents=ended.amount_cents,
        statement_text=ended.statement_text,
        funded_at_ms=funded_at,
    )


def require_payout(payment: Payment) -> Payout:
    """The payout of a Payment that is known to have one."""
    assert payment.payout is not None, f"{payment.id} has no payout"
    return payment.payout


def is_payout_of(partition: str, payment: Payment, key: str) -> bool:
    """Whether the Payment has, or had, a payout under this key."""
    attempts = 0 if payment.payout is None else payment.payout.attempt
    return any(key == payout_key(partition, payment.id, number + 1) for number in range(attempts))


def is_funded(payment: Payment) -> bool:
    """Whether the amount is at the off-ramp address, for another payout or for a refund."""
    return payment.books.offramp >= payment.amount_atomic


def is_drawn(payment: Payment) -> bool:
    """Whether the vault's funds have reached the off-ramp address, and no reorg undid that."""
    return payment.refunded_atomic - payment.books.payer >= payment.amount_atomic


# The transfer to the off-ramp address.


def fund(payment: Payment, *, now: Instant) -> Step[Payment]:
    """The transfer to the off-ramp address is final: the bank can be asked."""
    assert payment.release_id is not None
    funded = evolve(
        payment, payout=evolve(require_payout(payment), funded_at_ms=now), updated_at_ms=now
    )
    moved = {"payer": -payment.amount_atomic, "offramp": payment.amount_atomic}
    return payments.post_to_journal(funded, "send", payment.release_id, now=now, **moved)


def fail_funding(payment: Payment, reason: str, *, now: Instant) -> Step[Payment]:
    """The funds did not reach the off-ramp address, and the bank was not asked."""
    failed = _step_payout(payment, "fail", failure=reason)
    return payments.fail_release(failed, reason, now=now)


def block_funding(payment: Payment, reason: str, *, now: Instant) -> Step[Payment]:
    """Screening has blocked the transfer to the off-ramp address, and the bank was not asked."""
    return screening.block(_step_payout(payment, "fail", failure=reason), reason, now=now)


def reverse_funding(payment: Payment, *, now: Instant) -> Step[Payment]:
    """The off-ramp address does not have the funds after all; the vault has them.

    The payout continues: the bank may have been asked for it, and then nothing stops it. If it is
    returned, the next one begins with another transfer (`is_funded`).
    """
    assert payment.release_id is not None
    back = {"payer": payment.amount_atomic, "offramp": -payment.amount_atomic}
    step = payments.post_to_journal(payment, "send_reorged", payment.release_id, now=now, **back)
    return step.then(payments.apply_trigger, "offramp_reorged", now=now)


def cancel(payment: Payment) -> Step[Payment]:
    """The Payment was cancelled before its transfer was sent."""
    return Step(_step_payout(payment, "cancel"))


# The bank's answers.


def apply_bank_view(payment: Payment, seen: BankPayout, *, now: Instant) -> Step[Payment]:
    """The Payment after the bank's answer; unchanged if that shows nothing new.

    `seen` may be older than the known state, and several answers may be equal.
    """
    step = Step(payment)
    if require_payout(payment).status == "created":
        step = step.then(_submit, seen, now=now)
    trigger = _VIEWS.get((require_payout(step.record).status, seen.status))
    return step if trigger is None else step.then(trigger, seen, now=now)


def refuse(payment: Payment, reason: str, *, now: Instant) -> Step[Payment]:
    """The bank will never make this payout; the funds stay at the off-ramp address."""
    failed = _step_payout(payment, "fail", failure=reason)
    return payments.apply_trigger(
        failed, "release_failed", now=now, reason=reason, failure=reason, can_retry=True
    )


def _submit(payment: Payment, seen: BankPayout, *, now: Instant) -> Step[Payment]:
    payout = require_payout(payment)
    moved = {"offramp": -payment.amount_atomic, "bank": payment.amount_atomic}
    step = payments.post_to_journal(payment, "payout_submitted", payout.key, now=now, **moved)
    submitted = _step_payout(
        step.record,
        "submit",
        reference=seen.reference,
        submitted_at_ms=seen.submitted_at_ms,
        settles_on=seen.settles_on.isoformat(),
    )
    return evolve(step, record=evolve(submitted, updated_at_ms=now))


def _settle(payment: Payment, seen: BankPayout, *, now: Instant) -> Step[Payment]:
    payout = require_payout(payment)
    moved = {"bank": -payment.amount_atomic, "recipient": payment.amount_atomic}
    step = payments.post_to_journal(payment, "payout_settled", payout.key, now=now, **moved)
    settled = _step_payout(
        step.record,
        "settle",
        settles_on=seen.settles_on.isoformat(),
        settled_at_ms=now if seen.settled_at_ms is None else seen.settled_at_ms,
    )
    paid = evolve(step, record=settled)
    return paid.then(
        payments.apply_trigger, "settle", now=now, settled_atomic=payment.amount_atomic
    )


def _return_unsettled(payment: Payment, seen: BankPayout, *, now: Instant) -> Step[Payment]:
    """Take back a payout that may have settled in between: of both, only the return is reported."""
    return _take_back(payment, "bank", seen, now=now).then(
        payments.apply_trigger,
        "release_failed",
        now=now,
        reason="payout_returned",
        failure="payout_returned",
        can_retry=True,
    )


def _return_settled(payment: Payment, seen: BankPayout, *, now: Instant) -> Step[Payment]:
    return _take_back(payment, "recipient", seen, now=now).then(
        payments.apply_trigger,
        "payout_returned",
        now=now,
        failure="payout_returned",
        can_retry=True,
        settled_atomic=ZERO,
        succeeded_at_ms=None,
    )


def _take_back(payment: Payment, holder: str, seen: BankPayout, *, now: Instant) -> Step[Payment]:
    payout = require_payout(payment)
    moved = {holder: -payment.amount_atomic, "offramp": payment.amount_atomic}
    step = payments.post_to_journal(payment, "payout_returned", payout.key, now=now, **moved)
    returned = _step_payout(
        step.record,
        "return",
        settled_at_ms=seen.settled_at_ms,
        returned_at_ms=now if seen.returned_at_ms is None else seen.returned_at_ms,
        return_code=seen.return_code,
        failure="payout_returned",
    )
    return evolve(step, record=returned)


def _step_payout(payment: Payment, trigger: str, **changes: Any) -> Payment:
    payout = require_payout(payment)
    row = PAYOUT.step(payout.status, trigger)
    return evolve(payment, payout=evolve(payout, status=row.target, **changes))


_VIEWS: Mapping[tuple[str, str], Callable[..., Step[Payment]]] = {
    ("submitted", "settled"): _settle,
    ("submitted", "returned"): _return_unsettled,
    ("settled", "returned"): _return_settled,
}
"""The step for the known status and the status that the bank shows."""


# When to check.


def next_look_at(payout: Payout, now: Instant) -> Instant | None:
    """When a payout at the bank is checked again; None if it is not checked any more."""
    if payout.status == "submitted":
        waited = now - (payout.submitted_at_ms or now)
        return now + min(max(waited // 4, MIN_LOOK_MS), MAX_LOOK_MS)
    if payout.status != "settled" or payout.settled_at_ms is None:
        return None
    waited = now - payout.settled_at_ms
    if waited >= LATE_LOOKS_MS:
        return None
    return now + min(max(waited // 4, MIN_LATE_LOOK_MS), MAX_LATE_LOOK_MS)
