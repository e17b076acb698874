"""Reversals of a Payment's own transfers by a reorg. Pure.

A transfer to the recipient, or a refund, had succeeded; its block was undone, it was sent again,
and failed permanently. The books follow the chain, and the partner decides again.
"""

from __future__ import annotations

from payments_core.clock import Instant
from payments_core.engine.step import Step
from payments_core.evolve import evolve
from payments_core.money import Atomic
from payments_core.payments.journal.record import EntryCause
from payments_core.payments.lifecycle import CLEARED_RELEASE, apply_trigger, post_to_journal
from payments_core.payments.payer_totals import add_payment_from
from payments_core.payments.record import Payment


def reverse_release(payment: Payment, reason: str, *, now: Instant) -> Step[Payment]:
    """The recipient does not have the funds after all; the partner may send them again."""
    assert payment.release_id is not None
    is_send = payment.intent == "send"
    cause: EntryCause = "send_reorged" if is_send else "release_reorged"
    back = {
        "payer" if is_send else "escrow": payment.released_atomic,
        "recipient": -payment.settled_atomic,
        "fees": payment.settled_atomic - payment.released_atomic,
    }
    step = post_to_journal(payment, cause, payment.release_id, now=now, **back)
    changes = {**CLEARED_RELEASE, "settled_atomic": Atomic(0), "succeeded_at_ms": None}
    return step.then(
        apply_trigger, "release_reorged", now=now, reason=reason, failure=reason, **changes
    )


def reverse_refund(
    payment: Payment, refund_id: str, to: str, *, claimed: bool, now: Instant, **sources: int
) -> Step[Payment]:
    """The sender does not have the refund after all; it can be refunded again.

    `sources` are the accounts of the books that it was taken from; `claimed` says that its
    destination was a sender, whose claim is restored.
    """
    amount = sum(sources.values())
    paid_by = payment.paid_by
    if claimed:
        paid_by = add_payment_from(paid_by, to, amount, sources.get("excess", 0))
    more = evolve(payment, refunded_atomic=payment.refunded_atomic - amount, paid_by=paid_by)
    step = post_to_journal(more, "refund_reorged", refund_id, now=now, payer=-amount, **sources)
    return step.then(apply_trigger, _refund_trigger(step.record), now=now)


def _refund_trigger(payment: Payment) -> str:
    """The status of the Payment without the refund."""
    if payment.status not in ("partially_refunded", "refunded"):
        return "refund_reorged"
    if payment.release_id is None or payment.payout is not None:
        return "refund_reorged_held"
    is_whole = payment.books.recipient >= payment.settled_atomic
    return "refund_reorged_wholly" if is_whole else "refund_reorged_partly"
