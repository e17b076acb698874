"""The states of a refund, and the pure steps through them."""

from __future__ import annotations

from typing import Any

from payments_core.clock import Instant
from payments_core.engine.events import NewEvent
from payments_core.engine.state_machine import StateMachine, Transition, transitions_from
from payments_core.engine.step import Step
from payments_core.evolve import evolve
from payments_core.payments.events import build_event
from payments_core.payments.record import Payment
from payments_core.payments.refunds.record import Refund
from payments_core.payments.transitions import PAYMENT

REFUND = StateMachine(
    "refund",
    (
        Transition(
            None,
            "create",
            "created",
            emits="refund.created",
            why="The amount is reserved; nothing has moved.",
        ),
        Transition("created", "submit", "submitted", why="The refund's transfer was sent."),
        Transition(
            "created",
            "withdraw",
            "failed",
            emits="refund.failed",
            why="A reorg undid a transfer that brought the funds, before the refund was signed.",
        ),
        Transition(
            "created",
            "hold",
            "created",
            emits="payment.in_review",
            why="Screening has not cleared the destination; the transfer waits, unsigned.",
        ),
        Transition(
            "created",
            "pass",
            "created",
            why="Screening has cleared the destination; the transfer is signed.",
        ),
        Transition(
            "created",
            "block",
            "failed",
            emits="refund.failed",
            why="Screening has blocked the destination; nothing was signed.",
        ),
        Transition(
            "submitted",
            "confirm",
            "succeeded",
            emits="refund.succeeded",
            why="The refund's transfer is proven and final.",
        ),
        *transitions_from(
            ("submitted",),
            "fail",
            "failed",
            emits="refund.failed",
            why="The transfer failed permanently; the amount can be refunded again.",
        ),
        Transition(
            "succeeded",
            "reorg",
            "failed",
            emits="refund.failed",
            why="A reorg undid the transfer, and it failed when it was sent again.",
        ),
    ),
    terminal=("failed",),
)


def create(refund: Refund, payment: Payment) -> Step[Refund]:
    """A new refund in its first state."""
    row = REFUND.step(None, "create")
    refund = evolve(refund, status=row.target, status_version=1)
    return Step(refund, (_build_event("refund.created", refund, payment),))


def apply_trigger(
    refund: Refund, trigger: str, payment: Payment, *, now: Instant, **changes: Any
) -> Step[Refund]:
    """The refund after `trigger`, with `changes`. Raises InvalidState."""
    row = REFUND.step(refund.status, trigger)
    changes["in_review"] = trigger == "hold"
    if row.target == "succeeded":
        changes["succeeded_at_ms"] = now
    after = evolve(
        refund,
        status=row.target,
        status_version=refund.status_version + 1,
        updated_at_ms=now,
        **changes,
    )
    if row.emits == "payment.in_review":
        return Step(after, (build_event(row.emits, payment, refundId=refund.id),))
    return Step(after, (_build_event(row.emits, after, payment),) if row.emits else ())


def hold(refund: Refund, payment: Payment, *, now: Instant) -> Step[Refund]:
    """Screening has not cleared the destination; unchanged if it is held already."""
    return Step(refund) if refund.in_review else apply_trigger(refund, "hold", payment, now=now)


def end_hold(refund: Refund, payment: Payment, *, now: Instant) -> Step[Refund]:
    """Screening has cleared the destination; unchanged if it is not held."""
    return apply_trigger(refund, "pass", payment, now=now) if refund.in_review else Step(refund)


def payment_trigger(payment: Payment, refund: Refund) -> str:
    """The trigger of the Payment's table for a final refund.

    The books are given as they will be after the refund.
    """
    books = payment.books
    if refund.purpose == "refund_excess":
        return "refund_excess"
    from_held = refund.from_escrow_atomic + refund.from_excess_atomic + refund.from_offramp_atomic
    nothing_held = books.held_atomic - from_held <= 0
    nothing_left = nothing_held and books.recipient - refund.from_recipient_atomic <= 0
    wanted = "refund_part"
    if refund.purpose == "reconcile_refund" and nothing_held:
        wanted = "reconcile_refund"
    elif refund.purpose == "refund" and nothing_left:
        wanted = "refund_all"
    return wanted if PAYMENT.allows(payment.status, wanted) else "refund_part"


def _build_event(name: str, refund: Refund, payment: Payment) -> NewEvent:
    return NewEvent(
        name,
        {
            "paymentId": payment.id,
            "refundId": refund.id,
            "status": refund.status,
            "statusVersion": refund.status_version,
            "amountAtomic": str(refund.amount_atomic),
        },
        payment.api_version,
        payment.account_id,
        payment.external_user_id,
    )
