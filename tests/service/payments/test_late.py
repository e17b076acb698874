"""Funds that come when the Payment has ended: nobody's loss, and somebody's decision."""

from __future__ import annotations

import pytest

from payments_core.clock import DAY, SECOND
from payments_core.errors import InvalidState, ReconciliationActionNotAllowed
from payments_core.payments.details import PaymentDetails
from tests.service.world import WALLET, World, atomic

DAY_S = DAY // SECOND


def ended(world: World, how: str = "expired") -> PaymentDetails:
    """A Payment of 25.00 that expired or was cancelled with nothing received."""
    payment = world.payment(expires_in_s=300)
    if how == "cancelled":
        world.resources.payments.cancel(payment.payment.id)
    world.advance(310)
    assert world.paid(payment.payment.id).status == how
    return payment


@pytest.mark.parametrize("how", ["expired", "cancelled"])
def test_a_late_payment_asks_for_a_decision_and_can_be_accepted(world: World, how: str) -> None:
    payment = ended(world, how)
    world.pay(payment, "25.00")
    world.run()
    assert world.paid(payment.payment.id).status == how  # not final
    world.finish()
    late = world.paid(payment.payment.id)
    assert (late.status, late.labels) == ("action_required", ("late",))
    assert (late.reconciliation.status, late.received_atomic) == ("open", atomic("25"))
    assert late.release_id is None
    assert world.reported_events(late.id) == [
        ("payment.created", "awaiting_payment", 1),
        (f"payment.{how}", how, 2),
        ("payment.action_required", "action_required", 3),
    ]
    reported = world.last_payload(late.id, "payment.action_required")
    assert (reported["labels"], reported["receivedAmountAtomic"]) == (["late"], str(atomic("25")))

    world.reconcile(payment, "accept")
    world.finish()
    done = world.paid(late.id)
    assert (done.status, done.settled_atomic, done.labels) == ("succeeded", atomic("25"), ("late",))
    assert (done.reconciliation.status, done.reconciliation.resolution) == ("resolved", "accept")
    assert world.on_chain(world.vault_address(world.merchant)) == atomic("25")


def test_a_late_payment_can_be_sent_back(world: World) -> None:
    payment = ended(world)
    world.pay(payment, "25.00")
    world.finish()
    world.reconcile(payment, "refund")
    world.finish()
    done = world.paid(payment.payment.id)
    assert (done.status, done.refunded_atomic) == ("refunded", atomic("25"))
    assert world.reported_events(done.id)[-1] == ("payment.reconciled", "refunded", 4)
    assert world.on_chain(WALLET) == atomic("25")


@pytest.mark.parametrize("how", ["expired", "cancelled"])
def test_after_the_window_the_end_stays_and_the_funds_can_only_go_back(
    world: World, how: str
) -> None:
    payment = ended(world, how)
    world.advance(DAY_S)
    world.pay(payment, "25.00")
    world.finish()
    late = world.paid(payment.payment.id)
    assert (late.status, late.labels) == (how, ("late",))
    assert late.reconciliation.status == "open"
    assert world.reported_events(late.id)[-1] == ("payment.late", how, 3)
    for action in ("accept", "retry_execution", "write_off"):
        with pytest.raises(InvalidState):
            world.reconcile(payment, action)
    world.reconcile(payment, "refund")
    world.finish()
    done = world.paid(late.id)
    assert (done.status, done.refunded_atomic) == (how, atomic("25"))
    assert (done.reconciliation.status, done.reconciliation.resolution) == ("resolved", "refund")
    assert world.reported_events(done.id)[-1] == ("payment.reconciled", how, 4)
    assert world.on_chain(WALLET) == atomic("25")


def test_the_window_lasts_a_day_from_the_expiry(world: World) -> None:
    payment = ended(world)
    world.advance(DAY_S - 60)
    world.pay(payment, "25.00")
    world.advance(30)
    assert world.paid(payment.payment.id).status == "action_required"


def test_what_was_seen_before_the_expiry_is_not_late(world: World) -> None:
    payment = world.payment(expires_in_s=300)
    world.advance(299)
    world.pay(payment, "25.00")
    world.advance(2)
    assert world.paid(payment.payment.id).status == "processing"
    world.finish()
    done = world.paid(payment.payment.id)
    assert (done.status, done.labels) == ("succeeded", ())
    assert world.event_names(done.id)["payment.expired"] == 0


def test_another_late_receipt_is_reported_and_accepted_with_the_first(world: World) -> None:
    payment = ended(world)
    world.pay(payment, "10.00")
    world.finish()
    world.pay(payment, "15.00")
    world.finish()
    late = world.paid(payment.payment.id)
    assert (late.status, late.received_atomic) == ("action_required", atomic("25"))
    assert world.reported_events(late.id)[-2:] == [
        ("payment.action_required", "action_required", 3),
        ("payment.late", "action_required", 4),
    ]
    world.reconcile(payment, "accept")
    world.finish()
    assert world.paid(late.id).settled_atomic == atomic("25")


def test_late_and_too_much_are_two_things_to_settle(world: World) -> None:
    payment = ended(world)
    world.pay(payment, "30.00")
    world.finish()
    late = world.paid(payment.payment.id)
    assert (late.status, late.labels) == ("action_required", ("late", "overpaid"))
    assert late.excess_atomic == atomic("5")
    assert world.reported_events(late.id)[-2:] == [
        ("payment.action_required", "action_required", 3),
        ("payment.overpaid", "action_required", 4),
    ]
    accepted = world.reconcile(payment, "accept")
    assert accepted.reconciliation.status == "open"  # the excess is still held
    world.finish()
    assert world.paid(late.id).settled_atomic == atomic("25")
    world.reconcile(payment, "refund_excess")
    world.finish()
    done = world.paid(late.id)
    assert (done.status, done.reconciliation.status) == ("succeeded", "resolved")
    assert world.on_chain(WALLET) == atomic("5")


def test_sending_back_what_is_late_sends_the_excess_too(world: World) -> None:
    payment = ended(world)
    world.pay(payment, "30.00")
    world.finish()
    world.reconcile(payment, "refund")
    world.finish()
    done = world.paid(payment.payment.id)
    assert (done.status, done.refunded_atomic, done.books.held_atomic) == (
        "refunded",
        atomic("30"),
        0,
    )
    assert done.reconciliation.status == "resolved"
    assert world.on_chain(WALLET) == atomic("30")


def test_excess_alone_can_go_back_while_the_rest_waits(world: World) -> None:
    payment = ended(world)
    world.pay(payment, "30.00")
    world.finish()
    world.reconcile(payment, "refund_excess")
    world.finish()
    late = world.paid(payment.payment.id)
    assert (late.status, late.excess_atomic, late.books.escrow) == (
        "action_required",
        0,
        atomic("25"),
    )
    assert late.reconciliation.status == "open"  # the late funds themselves
    world.reconcile(payment, "accept")
    world.finish()
    assert world.paid(late.id).settled_atomic == atomic("25")


def test_what_comes_after_a_payment_was_given_up_is_late_and_goes_back(world: World) -> None:
    payment = ended(world)
    world.pay(payment, "10.00")
    world.finish()
    world.reconcile(payment, "write_off")
    world.pay(payment, "15.00")
    world.finish()
    late = world.paid(payment.payment.id)
    assert (late.status, late.received_atomic) == ("failed", atomic("25"))
    assert world.reported_events(late.id)[-1][:2] == ("payment.late", "failed")
    world.reconcile(payment, "refund")
    world.finish()
    done = world.paid(late.id)
    assert (done.status, done.refunded_atomic) == ("failed", atomic("25"))
    assert world.on_chain(WALLET) == atomic("25")


def test_what_comes_after_all_went_back_can_go_back_too(world: World) -> None:
    payment = ended(world)
    world.pay(payment, "10.00")
    world.finish()
    world.reconcile(payment, "refund")
    world.finish()
    reported = len(world.reported_events(payment.payment.id))
    world.pay(payment, "15.00")
    world.finish()
    late = world.paid(payment.payment.id)
    assert (late.status, late.received_atomic) == ("refunded", atomic("25"))
    assert len(world.reported_events(late.id)) > reported
    assert late.reconciliation.status == "open"
    world.reconcile(payment, "refund_excess")
    world.finish()
    assert world.on_chain(WALLET) == atomic("25")


def test_with_nothing_received_there_is_nothing_to_decide(memory_world: World) -> None:
    payment = ended(memory_world)
    for action in ("refund", "refund_excess"):
        with pytest.raises(ReconciliationActionNotAllowed):
            memory_world.reconcile(payment, action)
    for action in ("accept", "write_off", "retry_execution"):
        with pytest.raises(InvalidState):
            memory_world.reconcile(payment, action)
