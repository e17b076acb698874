"""More came than was asked for: the amount is released, the excess waits to go back."""

from __future__ import annotations

import pytest

from payments_core.errors import InvalidState, ReconciliationActionNotAllowed
from payments_core.payments.details import PaymentDetails
from payments_core.payments.refunds.record import Refund
from tests.service.world import OTHER_WALLET, WALLET, World, answer_of, atomic, once


def overpaid(world: World, amount: str = "30.00") -> PaymentDetails:
    """A Payment of 25.00 that succeeded with more."""
    payment = world.payment("25.00")
    world.pay(payment, amount)
    world.finish()
    assert world.paid(payment.payment.id).status == "succeeded"
    return payment


def test_the_amount_is_released_and_the_excess_stays_in_escrow(world: World) -> None:
    payment = overpaid(world)
    done = world.paid(payment.payment.id)
    assert done.labels == ("overpaid",)
    assert (done.received_atomic, done.settled_atomic, done.excess_atomic) == (
        atomic("30"),
        atomic("25"),
        atomic("5"),
    )
    assert done.remaining.amount_atomic == 0
    assert (done.reconciliation.status, done.reconciliation.resolution) == ("open", None)
    assert world.reported_events(done.id) == [
        ("payment.created", "awaiting_payment", 1),
        ("payment.processing", "processing", 2),
        ("payment.accepted", "accepted", 3),
        ("payment.overpaid", "accepted", 4),
        ("payment.executing", "executing", 5),
        ("payment.succeeded", "succeeded", 6),
    ]
    reported = world.last_payload(done.id, "payment.overpaid")
    assert reported["labels"] == ["overpaid"]
    assert reported["receivedAmountAtomic"] == str(atomic("30"))
    assert reported["excessAmountAtomic"] == str(atomic("5"))
    assert world.journal(done.id) == [
        ("receipt", {"payer": -atomic("30"), "escrow": atomic("25"), "excess": atomic("5")}),
        ("release", {"escrow": -atomic("25"), "recipient": atomic("25")}),
    ]
    assert world.on_chain(world.vault_address(world.merchant)) == atomic("25")
    assert world.on_chain(str(done.escrow_address)) == atomic("5")


def test_the_excess_goes_back_once(world: World) -> None:
    payment = overpaid(world)
    waiting = world.reconcile(payment, "refund_excess")
    assert waiting.status == "succeeded"
    assert waiting.reconciliation.status == "open"  # until the refund is final
    [refund] = world.resources.payments.list_refunds(waiting.id).records
    assert (refund.destination, refund.amount_atomic, refund.from_excess_atomic) == (
        WALLET, atomic("5"), atomic("5"),
    )  # fmt: skip
    with pytest.raises(ReconciliationActionNotAllowed):
        world.reconcile(payment, "refund_excess")
    world.finish()
    done = world.paid(waiting.id)
    assert (done.status, done.excess_atomic, done.refunded_atomic) == ("succeeded", 0, atomic("5"))
    assert (done.reconciliation.status, done.reconciliation.resolution) == (
        "resolved", "refund_excess",
    )  # fmt: skip
    assert world.reported_events(done.id)[-1] == ("payment.reconciled", "succeeded", 7)
    reported = world.last_payload(done.id, "payment.reconciled")
    assert (reported["excessAmountAtomic"], reported["refundedAmountAtomic"]) == (
        "0",
        str(atomic("5")),
    )
    assert world.journal(done.id)[-1] == (
        "refund", {"payer": atomic("5"), "excess": -atomic("5")},
    )  # fmt: skip
    assert world.on_chain(WALLET) == atomic("5")
    assert world.on_chain(str(done.escrow_address)) == 0
    with pytest.raises(ReconciliationActionNotAllowed):
        world.reconcile(payment, "refund_excess")


def test_a_decision_about_the_excess_is_made_once_for_each_key(world: World) -> None:
    payment = overpaid(world)

    def decide() -> object:
        return world.reconcile(payment, "refund_excess", idempotency_key=once("k"))

    assert answer_of(decide) is None
    assert answer_of(decide) is not None
    world.finish()
    assert answer_of(decide) is not None
    assert world.on_chain(WALLET) == atomic("5")


def test_several_receipts_that_pass_the_amount_are_overpaid(world: World) -> None:
    payment = world.payment("25.00")
    world.pay(payment, "20.00")
    world.finish()
    world.pay(payment, "20.00", source=OTHER_WALLET)
    world.finish()
    done = world.paid(payment.payment.id)
    assert (done.status, done.labels) == ("succeeded", ("underpaid", "overpaid"))
    assert (done.settled_atomic, done.excess_atomic) == (atomic("25"), atomic("15"))
    assert world.journal(done.id)[1] == (
        "receipt", {"payer": -atomic("20"), "escrow": atomic("5"), "excess": atomic("15")},
    )  # fmt: skip
    world.reconcile(payment, "refund_excess")  # to whom it came from last
    world.finish()
    assert (world.on_chain(WALLET), world.on_chain(OTHER_WALLET)) == (0, atomic("15"))


def test_what_comes_after_the_end_is_excess(world: World) -> None:
    option = world.authorized("25.00")
    world.finish()
    payment = world.resources.payments.read(option.payment.id)
    world.pay(payment, "3.00")
    world.finish()
    done = world.paid(payment.payment.id)
    assert (done.status, done.labels, done.excess_atomic) == (
        "succeeded",
        ("overpaid",),
        atomic("3"),
    )
    assert done.settled_atomic == atomic("25")
    assert world.reported_events(done.id)[-1] == ("payment.overpaid", "succeeded", 6)
    world.reconcile(payment, "refund_excess")
    world.finish()
    assert world.on_chain(WALLET) == atomic("3")
    assert world.held() == (atomic("75"), 0, atomic("75"))


def test_excess_goes_back_while_the_release_is_under_way(world: World) -> None:
    payment = world.payment("25.00")
    world.pay(payment, "30.00")
    while world.paid(payment.payment.id).status != "executing":
        world.advance(1)
    waiting = world.reconcile(payment, "refund_excess")
    assert waiting.status == "executing"
    world.finish()
    done = world.paid(waiting.id)
    assert (done.status, done.settled_atomic, done.excess_atomic) == ("succeeded", atomic("25"), 0)
    assert done.reconciliation.status == "resolved"
    assert world.on_chain(WALLET) == atomic("5")
    assert world.on_chain(str(done.escrow_address)) == 0


def test_more_excess_while_some_goes_back_is_still_to_be_settled(world: World) -> None:
    payment = overpaid(world)
    world.reconcile(payment, "refund_excess")
    world.pay(payment, "2.00")
    world.finish()
    between = world.paid(payment.payment.id)
    assert (between.excess_atomic, between.refunded_atomic) == (atomic("2"), atomic("5"))
    assert between.reconciliation.status == "open"
    assert world.event_names(between.id)["payment.overpaid"] == 2
    world.reconcile(payment, "refund_excess")
    world.finish()
    done = world.paid(between.id)
    assert (done.excess_atomic, done.refunded_atomic) == (0, atomic("7"))
    assert done.reconciliation.status == "resolved"
    assert world.on_chain(WALLET) == atomic("7")


def test_a_refund_of_the_amount_leaves_the_excess_where_it_is(world: World) -> None:
    payment = overpaid(world)
    refund = world.refund(payment, "25.00")
    assert (refund.from_recipient_atomic, refund.from_excess_atomic) == (atomic("25"), 0)
    world.finish()
    between = world.paid(payment.payment.id)
    assert (between.status, between.excess_atomic) == ("partially_refunded", atomic("5"))
    world.reconcile(payment, "refund_excess")
    world.finish()
    done = world.paid(between.id)
    assert (done.refunded_atomic, done.excess_atomic, done.books.payer) == (atomic("30"), 0, 0)
    assert world.on_chain(WALLET) == atomic("30")
    assert world.get(Refund, refund.id).status == "succeeded"


def test_without_excess_none_can_be_sent_back(memory_world: World) -> None:
    waiting = memory_world.payment()
    with pytest.raises(InvalidState):
        memory_world.reconcile(waiting, "refund_excess")
    option = memory_world.authorized()
    memory_world.finish()
    paid = memory_world.resources.payments.read(option.payment.id)
    with pytest.raises(ReconciliationActionNotAllowed):
        memory_world.reconcile(paid, "refund_excess")
    for action in ("accept", "refund", "retry_execution", "write_off"):
        with pytest.raises(InvalidState):
            memory_world.reconcile(paid, action)


def test_excess_that_a_reorg_takes_back_after_its_refund_is_shown_as_none(world: World) -> None:
    """The wire has digit strings only; what is missing is seen in the escrow and the label."""
    payment = overpaid(world, "25.00")
    world.pay(payment, "5.00")
    world.advance(6)
    world.reconcile(payment, "refund_excess")
    world.advance(8)
    assert world.paid(payment.payment.id).refunded_atomic == atomic("5")
    world.reorg(24)
    world.run()
    reorged = world.paid(payment.payment.id)
    assert reorged.books.excess == -atomic("5")  # until the refund fails too
    assert reorged.excess_atomic == 0
    world.finish()
    for event in world.events(reorged.id):
        for name, value in event.payload.items():
            assert not name.endswith("Atomic") or str(value).isdigit(), (event.name, name)
