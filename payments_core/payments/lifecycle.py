"""The states of a Payment (contract §6), and the pure steps through them."""

from __future__ import annotations

from typing import Any

import attrs

from payments_core.clock import Instant
from payments_core.errors import InvalidState, PaymentExpired
from payments_core.events import Happening
from payments_core.payments.record import Payment, Reconciliation, TimelineEntry
from payments_core.transitions import Machine, Transition, rows

_OPEN = ("awaiting_payment", "processing")
_CLOSED_EMPTY = ("expired", "cancelled")
_AFTER_COVERED = ("accepted", "executing", "succeeded", "partially_refunded")
_RELEASED = ("executing", "succeeded", "partially_refunded", "refunded")
_WITH_EXCESS = (*_AFTER_COVERED, "action_required", "refunded")

PAYMENT = Machine(
    "payment",
    (
        Transition(
            None,
            "create",
            "awaiting_payment",
            emits="payment.created",
            why="Nothing has moved; the escrow address is known and waits.",
        ),
        *rows(
            ("awaiting_payment",),
            "attempt",
            "processing",
            emits="payment.processing",
            why="An authorization was recorded, or a receipt was seen that is not final.",
        ),
        *rows(
            ("processing",),
            "attempt_ended",
            "awaiting_payment",
            why="The attempt failed or its receipt was reorged out, and nothing else is pending.",
        ),
        *rows(
            _OPEN,
            "covered",
            "accepted",
            emits="payment.accepted",
            why="Verified receipts cover the amount less tolerance.",
        ),
        *rows(
            _OPEN,
            "short",
            "awaiting_payment",
            emits="payment.underpaid",
            label="underpaid",
            why="Verified receipts are short of the amount.",
        ),
        Transition(
            "accepted",
            "release",
            "executing",
            emits="payment.executing",
            why="The release from escrow was submitted.",
        ),
        Transition(
            "executing",
            "settle",
            "succeeded",
            emits="payment.succeeded",
            why="The release is final on chain, or the bank settled the payout.",
        ),
        Transition(
            "executing",
            "release_failed",
            "action_required",
            emits="payment.action_required",
            label="execution_failed",
            why="The release was rejected, reverted or returned; the funds are still in escrow.",
        ),
        Transition(
            "awaiting_payment",
            "expire",
            "expired",
            emits="payment.expired",
            why="The time ran out and nothing was received.",
        ),
        Transition(
            "awaiting_payment",
            "expire_short",
            "action_required",
            emits="payment.action_required",
            label="underpaid",
            why="The time ran out and part was received.",
        ),
        *rows(
            _OPEN,
            "cancel",
            "cancelled",
            emits="payment.cancelled",
            why="Cancelled with nothing received or broadcast.",
        ),
        *rows(
            _CLOSED_EMPTY,
            "late_receipt",
            "action_required",
            emits="payment.action_required",
            label="late",
            why="A receipt was verified within the monitoring window.",
        ),
        *rows(
            _CLOSED_EMPTY,
            "receipt_after_window",
            None,
            emits="payment.late",
            label="late",
            why="A receipt was verified after the window; it can be refunded.",
        ),
        *rows(
            _WITH_EXCESS,
            "overpaid",
            None,
            emits="payment.overpaid",
            label="overpaid",
            why="The verified total passes the amount; the excess stays in escrow.",
        ),
        *rows(
            _WITH_EXCESS,
            "duplicate",
            None,
            emits="payment.overpaid",
            label="duplicate",
            why="A whole second payment of the same amount came.",
        ),
        Transition(
            "action_required",
            "further_receipt",
            "action_required",
            emits="payment.late",
            label="late",
            why="Another receipt was verified while the Payment waits for a decision.",
        ),
        Transition(
            "action_required",
            "reconcile_accept",
            "accepted",
            emits="payment.reconciled",
            why="The partner takes what was received.",
        ),
        Transition(
            "action_required",
            "retry_execution",
            "executing",
            emits="payment.reconciled",
            why="The partner asks for the release again.",
        ),
        Transition(
            "action_required",
            "reconcile_refund",
            "refunded",
            emits="payment.reconciled",
            why="All that was received has gone back.",
        ),
        Transition(
            "action_required",
            "write_off",
            "failed",
            emits="payment.reconciled",
            why="The partner gives the Payment up.",
        ),
        *rows(
            ("succeeded", "partially_refunded"),
            "refund_part",
            "partially_refunded",
            emits="payment.refunded",
            why="A refund of a part is final.",
        ),
        Transition(
            "action_required",
            "refund_part",
            "action_required",
            emits="payment.refunded",
            why="A partial refund does not settle the cause.",
        ),
        *rows(
            ("succeeded", "partially_refunded", "action_required"),
            "refund_all",
            "refunded",
            emits="payment.refunded",
            why="All that was received has gone back.",
        ),
        *rows(
            _WITH_EXCESS,
            "refund_excess",
            None,
            emits="payment.reconciled",
            why="The excess has gone back.",
        ),
        Transition(
            "succeeded",
            "payout_returned",
            "action_required",
            emits="payment.action_required",
            label="returned",
            why="The bank returned the payout.",
        ),
        Transition(
            "accepted",
            "reorged",
            "action_required",
            emits="payment.action_required",
            label="reorged",
            why="A verified receipt was reorged out before the release was sent.",
        ),
        *rows(
            (*_RELEASED, "action_required"),
            "reorged",
            None,
            emits="payment.reorged",
            label="reorged",
            why="A verified receipt was reorged out later; never a second release.",
        ),
    ),
    terminal=("failed",),
)

_MOMENTS = {"succeeded": "succeeded_at", "cancelled": "cancelled_at"}


def created(payment: Payment, *, now: Instant) -> tuple[Payment, tuple[Happening, ...]]:
    """A new Payment in its first state, and its event."""
    row = PAYMENT.step(None, "create")
    first = TimelineEntry(status=row.target, at=now)
    payment = attrs.evolve(payment, status=row.target, status_version=1, timeline=(first,))
    return payment, (_happening("payment.created", payment),)


def step(
    payment: Payment, trigger: str, *, now: Instant, reason: str | None = None, **changes: Any
) -> tuple[Payment, tuple[Happening, ...]]:
    """The Payment after `trigger`, with `changes`, and the events of the change.

    Raises InvalidState where the table has no row.
    """
    row = PAYMENT.step(payment.status, trigger)
    labels = payment.labels
    if row.label is not None and row.label not in labels:
        labels = (*labels, row.label)
    reconciliation = payment.reconciliation
    if row.target == "action_required" or row.label not in (None, "underpaid"):
        reconciliation = Reconciliation(status="open")
    if row.target in _MOMENTS and row.target != payment.status:
        changes[_MOMENTS[row.target]] = now
    entry = TimelineEntry(status=row.target, at=now, reason=reason)
    after = attrs.evolve(
        payment,
        status=row.target,
        status_version=payment.status_version + 1,
        labels=labels,
        reconciliation=reconciliation,
        timeline=(*payment.timeline, entry),
        updated_at=now,
        **changes,
    )
    return after, (_happening(row.emits, after),) if row.emits else ()


def check_payable(payment: Payment, *, now: Instant) -> None:
    """Raise PaymentExpired or InvalidState where a payer can no longer act."""
    if payment.status == "expired" or (payment.status in _OPEN and now >= payment.expires_at):
        raise PaymentExpired(payment.expires_at)
    if payment.status in ("cancelled", "failed", "refunded"):
        raise InvalidState("payment", payment.status, "pay")


def begin_attempt(payment: Payment, *, now: Instant) -> tuple[Payment, tuple[Happening, ...]]:
    """An authorization was recorded."""
    return step(payment, "attempt", now=now, live_attempts=payment.live_attempts + 1)


def end_attempt(
    payment: Payment, *, now: Instant, reason: str
) -> tuple[Payment, tuple[Happening, ...]]:
    """An attempt came to nothing."""
    left = payment.live_attempts - 1
    if payment.status != "processing" or left > 0:
        return attrs.evolve(payment, live_attempts=left, updated_at=now), ()
    return step(payment, "attempt_ended", now=now, reason=reason, live_attempts=left)


def receive(
    payment: Payment, amount: int, *, now: Instant
) -> tuple[Payment, tuple[Happening, ...]]:
    """A receipt of an attempt was verified: its amount counts, once, and the attempt is over."""
    received = payment.received + amount
    trigger = "covered" if received >= payment.required else "short"
    after, events = step(
        payment,
        trigger,
        now=now,
        received=received,
        excess=max(0, received - payment.amount),
        live_attempts=payment.live_attempts - 1,
    )
    if after.excess == 0:
        return after, events
    over, more = step(after, "overpaid", now=now)
    return over, (*events, *more)


def settle(payment: Payment, *, now: Instant) -> tuple[Payment, tuple[Happening, ...]]:
    """The release is final."""
    return step(payment, "settle", now=now, settled=payment.releasable - payment.fee)


def expire(payment: Payment, *, now: Instant) -> tuple[Payment, tuple[Happening, ...]]:
    """The Payment's time ran out while nothing was under way."""
    return step(payment, "expire_short" if payment.received else "expire", now=now)


def cancel(payment: Payment, *, now: Instant) -> tuple[Payment, tuple[Happening, ...]]:
    """The partner gives up a Payment that received nothing. Raises InvalidState."""
    if payment.received:
        raise InvalidState("payment", payment.status, "cancel")
    return step(payment, "cancel", now=now, live_attempts=0)


def _happening(name: str, payment: Payment) -> Happening:
    return Happening(
        name,
        {
            "paymentId": payment.id,
            "accountId": payment.account_id,
            "status": payment.status,
            "statusVersion": payment.status_version,
            "labels": list(payment.labels),
            "assetSymbol": payment.asset_symbol,
            "chainId": payment.chain_id,
            "amountAtomic": str(payment.amount),
            "receivedAmountAtomic": str(payment.received),
            "excessAmountAtomic": str(payment.excess),
            "settledAmountAtomic": str(payment.settled),
            "refundedAmountAtomic": str(payment.refunded),
        },
        payment.api_version,
        payment.account_id,
        payment.external_user_id,
    )
