"""A refund at its end: what it means for the Payment, and which events it has."""

from __future__ import annotations

import attrs
import pytest

from payments_core.payments import lifecycle as payments
from payments_core.payments.refunds.lifecycle import REFUND, apply_trigger, create, payment_trigger
from payments_core.payments.refunds.plans import FUNDS_IN_ESCROW, FUNDS_PAID_OUT
from payments_core.payments.refunds.record import PENDING
from payments_core.payments.transitions import PAYMENT
from tests.core.examples import (
    ALICE,
    BOB,
    NOW,
    Stage,
    a_payment,
    a_refund,
    held,
    stages,
)

LATER = NOW + 1_500
STAGES = stages()


@pytest.mark.parametrize(
    ("name", "purpose", "sources", "trigger", "status"),
    [
        ("action_required, short", "refund", {"escrow": 100}, "refund_part", "action_required"),
        ("action_required, short", "refund", {"escrow": 600}, "refund_all", "refunded"),
        (
            "action_required, short",
            "reconcile_refund",
            {"escrow": 600},
            "reconcile_refund",
            "refunded",
        ),
        (
            "action_required, short",
            "reconcile_refund",
            {"escrow": 400},
            "refund_part",
            "action_required",
        ),
        (
            "action_required, overpaid",
            "refund_excess",
            {"excess": 300},
            "refund_excess",
            "action_required",
        ),
        (
            "action_required, overpaid",
            "refund",
            {"escrow": 1_000},
            "refund_part",
            "action_required",
        ),
        (
            "action_required, overpaid",
            "refund",
            {"escrow": 1_000, "excess": 300},
            "refund_all",
            "refunded",
        ),
        ("succeeded", "refund", {"recipient": 1}, "refund_part", "partially_refunded"),
        ("succeeded", "refund", {"recipient": 1_000}, "refund_all", "refunded"),
        ("partially_refunded", "refund", {"recipient": 1}, "refund_part", "partially_refunded"),
        ("partially_refunded", "refund", {"recipient": 600}, "refund_all", "refunded"),
        (
            "succeeded, overpaid",
            "refund",
            {"recipient": 1_000},
            "refund_part",
            "partially_refunded",
        ),
        ("succeeded, overpaid", "refund_excess", {"excess": 300}, "refund_excess", "succeeded"),
        (
            "expired, received after the window",
            "refund",
            {"escrow": 1_000},
            "refund_part",
            "expired",
        ),
        (
            "expired, received after the window",
            "reconcile_refund",
            {"escrow": 1_000},
            "reconcile_refund",
            "expired",
        ),
        ("failed", "reconcile_refund", {"escrow": 600}, "reconcile_refund", "failed"),
        ("failed", "refund", {"escrow": 600}, "refund_part", "failed"),
    ],
)
def test_what_a_final_refund_brings(
    name: str, purpose: str, sources: dict[str, int], trigger: str, status: str
) -> None:
    payment = STAGES[name].payment
    refund = a_refund(
        purpose=purpose, **{f"from_{source}_atomic": amount for source, amount in sources.items()}
    )
    assert payment_trigger(payment, refund) == trigger
    after = payments.apply_refund(payment, trigger, refund.id, ALICE, now=LATER, **sources).record
    assert after.status == status
    assert after.refunded_atomic == payment.refunded_atomic + refund.amount_atomic


@pytest.mark.parametrize("purpose", ["refund", "reconcile_refund"])
def test_a_refund_that_is_final_after_the_last_is_booked_all_the_same(purpose: str) -> None:
    """Two were under way when a reorg took the funds of the second; the first was the last then."""
    stage = Stage(a_payment()).counting(300, BOB).counting(300, ALICE)
    payment = payments.expire(stage.payment, now=LATER).record
    first = a_refund(purpose=purpose, destination=BOB, from_escrow_atomic=300)
    second = a_refund(purpose=purpose, id="refund_2", destination=ALICE, from_escrow_atomic=300)
    payment = payments.reverse_receipt(
        payment, stage.receipts[1], now=LATER, release_stopped=False
    ).record
    for refund in (first, second):
        change = payments.apply_refund(
            payment,
            payment_trigger(payment, refund),
            refund.id,
            refund.destination,
            now=LATER,
            escrow=300,
        )
        payment = change.record
        assert payment.status == "refunded"
    assert (payment.refunded_atomic, payment.books.held_atomic) == (600, -300)


@pytest.mark.parametrize("purpose", ["refund", "reconcile_refund", "refund_excess"])
@pytest.mark.parametrize("name", [n for n, stage in STAGES.items() if stage.receipts])
def test_a_final_refund_is_booked_in_whatever_status_it_finds(name: str, purpose: str) -> None:
    """The money has gone: only before a Payment is covered nothing can have been sent back."""
    payment = STAGES[name].payment
    if payment.status in ("awaiting_payment", "processing"):
        return
    if payment.status in ("accepted", "executing") and purpose != "refund_excess":
        return  # with a refund under way nothing is released
    refund = a_refund(purpose=purpose, from_escrow_atomic=1)
    trigger = payment_trigger(payment, refund)
    assert PAYMENT.allows(payment.status, trigger)
    payments.apply_refund(payment, trigger, refund.id, ALICE, now=LATER, escrow=1)


def test_a_refund_that_is_over_is_under_way_no_more() -> None:
    payment = attrs.evolve(held((1_000, ALICE)), refunding=("refund_1", "refund_2"))
    failed = payments.drop_refund(payment, "refund_1", now=LATER)
    assert failed.record == attrs.evolve(payment, refunding=("refund_2",), updated_at_ms=LATER)
    assert (failed.events, failed.entries) == ((), ())
    done = payments.apply_refund(payment, "refund_part", "refund_2", ALICE, now=LATER, escrow=1)
    assert done.record.refunding == ("refund_1",)


def test_a_refund_reports_itself() -> None:
    payment = held((1_000, ALICE))
    draft = a_refund(status="", status_version=0, from_escrow_atomic=400, from_excess_atomic=2)
    made = create(draft, payment)
    refund, [event] = made.record, made.events
    assert (refund.status, refund.status_version) == ("created", 1)
    assert event.name == "refund.created"
    assert event.payload["amountAtomic"] == "402"
    submitted = apply_trigger(refund, "submit", payment, now=LATER, transaction_hash="0xh")
    sent = submitted.record
    assert (sent.status, sent.transaction_hash, submitted.events) == ("submitted", "0xh", ())
    confirmed = apply_trigger(sent, "confirm", payment, now=LATER)
    done, [event] = confirmed.record, confirmed.events
    assert (done.status, done.succeeded_at_ms, event.name) == (
        "succeeded",
        LATER,
        "refund.succeeded",
    )
    assert (event.payload["status"], event.payload["statusVersion"]) == ("succeeded", 3)
    undone = apply_trigger(sent, "fail", payment, now=LATER, failure="transaction_failed")
    failed, [event] = undone.record, undone.events
    assert (failed.succeeded_at_ms, failed.failure) == (None, "transaction_failed")
    assert event.name == "refund.failed"


def test_the_statuses_are_those_of_the_table() -> None:
    assert set(FUNDS_IN_ESCROW) | set(FUNDS_PAID_OUT) <= PAYMENT.states
    assert set(PENDING) == REFUND.states - REFUND.terminal - {"succeeded"}
