"""The transfer to the recipient fails for good: the funds are in escrow, and somebody decides."""

from __future__ import annotations

import pytest

from payments_core.errors import InvalidState, ReconciliationActionNotAllowed
from payments_core.payments.details import PaymentDetails
from tests.service.world import WALLET, World, answer_of, atomic, once


def stuck(world: World) -> PaymentDetails:
    """A Payment of 25.00 from a wallet whose release was reverted."""
    payment = world.payment("25.00")
    world.pay(payment, "25.00")
    world.fail("transfer")
    world.finish()
    assert world.paid(payment.payment.id).status == "action_required"
    return payment


def test_a_reverted_release_leaves_the_funds_in_escrow(world: World) -> None:
    payment = stuck(world)
    failed = world.paid(payment.payment.id)
    assert failed.labels == ("execution_failed",)
    assert failed.failure == failed.timeline[-1].reason == "transaction_failed"
    assert (failed.reconciliation.status, failed.settled_atomic) == ("open", 0)
    assert world.reported_events(failed.id)[-2:] == [
        ("payment.executing", "executing", 4),
        ("payment.action_required", "action_required", 5),
    ]
    reported = world.last_payload(failed.id, "payment.action_required")
    assert (reported["labels"], reported["settledAmountAtomic"]) == (["execution_failed"], "0")
    assert len(world.journal(failed.id)) == 1  # the receipt's
    assert world.on_chain(str(failed.escrow_address)) == atomic("25")
    assert world.on_chain(world.vault_address(world.merchant)) == 0


def test_the_release_can_be_asked_for_again(world: World) -> None:
    payment = stuck(world)
    again = world.reconcile(payment, "retry_execution")
    assert (again.status, again.failure) == ("executing", None)
    assert (again.reconciliation.status, again.reconciliation.resolution) == (
        "resolved", "retry_execution",
    )  # fmt: skip
    with pytest.raises(InvalidState):
        world.reconcile(payment, "retry_execution")
    world.finish()
    done = world.paid(again.id)
    assert (done.status, done.settled_atomic) == ("succeeded", atomic("25"))
    assert world.reported_events(done.id)[5:] == [
        ("payment.reconciled", "executing", 6),
        ("payment.succeeded", "succeeded", 7),
    ]
    assert world.journal(done.id)[1:] == [
        ("release", {"escrow": -atomic("25"), "recipient": atomic("25")})
    ]
    assert world.on_chain(world.vault_address(world.merchant)) == atomic("25")
    assert world.sent() == 2


def test_it_may_fail_again_and_be_asked_for_again(world: World) -> None:
    payment = stuck(world)
    world.fail("transfer")
    world.reconcile(payment, "retry_execution")
    world.finish()
    between = world.paid(payment.payment.id)
    assert (between.status, between.reconciliation.status) == ("action_required", "open")
    assert between.labels == ("execution_failed",)
    world.reconcile(payment, "retry_execution")
    world.finish()
    done = world.paid(between.id)
    assert (done.status, done.settled_atomic) == ("succeeded", atomic("25"))
    assert world.event_names(done.id)["payment.action_required"] == 2
    assert world.on_chain(world.vault_address(world.merchant)) == atomic("25")


def test_a_key_asks_for_one_release(world: World) -> None:
    payment = stuck(world)

    def decide() -> object:
        return world.reconcile(payment, "retry_execution", idempotency_key=once("k"))

    assert answer_of(decide) is None
    assert answer_of(decide) is not None
    world.finish()
    assert answer_of(decide) is not None
    assert world.sent() == 2
    assert world.on_chain(world.vault_address(world.merchant)) == atomic("25")


def test_it_can_be_refunded_instead(world: World) -> None:
    option = world.authorized("25.00")
    world.run()  # the vault's transfer is sent; the next of ours is the release
    world.fail("transfer")
    world.finish()
    payment = world.resources.payments.read(option.payment.id)
    assert payment.payment.status == "action_required"
    assert world.option_now(option).status == "succeeded"
    world.reconcile(payment, "refund")
    world.finish()
    done = world.paid(payment.payment.id)
    assert (done.status, done.refunded_atomic, done.settled_atomic) == ("refunded", atomic("25"), 0)
    assert world.held() == (atomic("100"), 0, atomic("100"))
    assert world.on_chain(str(done.escrow_address)) == 0


def test_a_part_can_be_refunded_and_the_rest_released(world: World) -> None:
    payment = stuck(world)
    world.refund(payment, "10.00")
    with pytest.raises(ReconciliationActionNotAllowed):  # how much is left is not known yet
        world.reconcile(payment, "retry_execution")
    world.finish()
    between = world.paid(payment.payment.id)
    assert (between.status, between.refunded_atomic) == ("action_required", atomic("10"))
    assert between.reconciliation.status == "open"
    assert world.reported_events(between.id)[-1] == ("payment.refunded", "action_required", 6)
    world.reconcile(payment, "retry_execution")
    world.finish()
    done = world.paid(between.id)
    assert (done.status, done.settled_atomic) == ("succeeded", atomic("15"))
    assert world.on_chain(WALLET) == atomic("10")
    assert world.on_chain(world.vault_address(world.merchant)) == atomic("15")
    assert world.on_chain(str(done.escrow_address)) == 0


def test_what_comes_meanwhile_is_excess_and_is_not_released(world: World) -> None:
    payment = stuck(world)
    world.pay(payment, "25.00")
    world.finish()
    between = world.paid(payment.payment.id)
    assert (between.status, between.excess_atomic) == ("action_required", atomic("25"))
    assert between.labels == ("execution_failed", "duplicate")
    retried = world.reconcile(payment, "retry_execution")
    assert retried.reconciliation.status == "open"  # the excess is still held
    world.finish()
    done = world.paid(between.id)
    assert (done.settled_atomic, done.excess_atomic) == (atomic("25"), atomic("25"))
    world.reconcile(payment, "refund_excess")
    world.finish()
    assert world.on_chain(WALLET) == atomic("25")
    assert world.on_chain(str(done.escrow_address)) == 0


def test_a_given_up_payment_can_still_be_refunded_and_not_released(world: World) -> None:
    payment = stuck(world)
    world.reconcile(payment, "write_off")
    for action in ("retry_execution", "accept"):
        with pytest.raises(InvalidState):
            world.reconcile(payment, action)
    world.finish()
    assert world.sent() == 1
    world.refund(payment)
    world.finish()
    done = world.paid(payment.payment.id)
    assert (done.status, done.refunded_atomic, done.books.held_atomic) == (
        "failed",
        atomic("25"),
        0,
    )
    assert world.on_chain(WALLET) == atomic("25")


def test_what_failed_is_retried_and_not_accepted(memory_world: World) -> None:
    payment = stuck(memory_world)
    before = memory_world.paid(payment.payment.id)
    for action in ("accept", "refund_excess"):
        with pytest.raises(ReconciliationActionNotAllowed):
            memory_world.reconcile(payment, action)
    assert memory_world.paid(before.id) == before


@pytest.mark.parametrize("operation", ["broadcast", "lost_answer", "any"])
def test_a_chain_that_does_not_answer_is_not_a_failed_release(world: World, operation: str) -> None:
    payment = world.payment("25.00")
    world.pay(payment, "25.00")
    world.fail(operation, times=3)
    world.finish()
    done = world.paid(payment.payment.id)
    assert (done.status, done.labels) == ("succeeded", ())
    assert world.sent() == 1
    assert world.on_chain(world.vault_address(world.merchant)) == atomic("25")
