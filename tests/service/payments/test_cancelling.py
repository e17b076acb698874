"""Cancelling, at every state: what stops, what is given back, and what can no longer be stopped."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from payments_core.errors import InvalidState
from payments_core.payments.details import PaymentDetails
from tests.service.world import World, answer_of, atomic, once


def until(world: World, payment: PaymentDetails, status: str) -> PaymentDetails:
    for _ in range(200):
        if world.paid(payment.payment.id).status == status:
            return payment
        if not world.service.worker("sandbox").run_due(1):
            world.system.advance(1)
    raise AssertionError(world.paid(payment.payment.id).status)


def paid(world: World, amount: str = "25.00") -> PaymentDetails:
    payment = world.payment("25.00", expires_in_s=300)
    world.pay(payment, amount)
    return payment


def short(world: World) -> PaymentDetails:
    payment = paid(world, "10.00")
    world.finish()
    return payment


def expired(world: World) -> PaymentDetails:
    payment = world.payment(expires_in_s=300)
    world.advance(310)
    return payment


def action_required(world: World) -> PaymentDetails:
    payment = short(world)
    world.advance(310)
    return payment


def failed(world: World) -> PaymentDetails:
    payment = action_required(world)
    world.reconcile(payment, "write_off")
    return payment


def partially_refunded(world: World) -> PaymentDetails:
    payment = until(world, paid(world), "succeeded")
    world.refund(payment, "10.00")
    world.finish()
    return payment


def refunded(world: World) -> PaymentDetails:
    payment = until(world, paid(world), "succeeded")
    world.refund(payment)
    world.finish()
    return payment


def cancelled(world: World) -> PaymentDetails:
    payment = world.payment()
    world.resources.payments.cancel(payment.payment.id)
    return payment


TOO_LATE: dict[str, Callable[[World], PaymentDetails]] = {
    "awaiting_payment": short,  # with something received
    "processing": lambda world: until(world, paid(world), "processing"),  # a receipt was seen
    "accepted": lambda world: until(world, paid(world), "accepted"),
    "executing": lambda world: until(world, paid(world), "executing"),
    "succeeded": lambda world: until(world, paid(world), "succeeded"),
    "expired": expired,
    "cancelled": cancelled,
    "action_required": action_required,
    "failed": failed,
    "partially_refunded": partially_refunded,
    "refunded": refunded,
}


@pytest.mark.parametrize("status", TOO_LATE)
def test_it_cannot_be_cancelled_any_more(light_world: World, status: str) -> None:
    payment = TOO_LATE[status](light_world)
    before = light_world.paid(payment.payment.id)
    assert before.status == status
    reported = light_world.event_names()
    with pytest.raises(InvalidState) as caught:
        light_world.resources.payments.cancel(payment.payment.id)
    assert (caught.value.status, caught.value.action) == (status, "cancel")
    assert light_world.paid(before.id) == before
    assert light_world.event_names() == reported


def test_a_waiting_payment_is_cancelled(world: World) -> None:
    payment = world.payment()
    done = world.resources.payments.cancel(payment.payment.id).payment
    assert (done.status, done.status_version) == ("cancelled", 2)
    assert done.cancelled_at_ms == world.clock.now()
    assert (done.labels, done.reconciliation.status) == ((), "none")
    assert world.reported_events(done.id) == [
        ("payment.created", "awaiting_payment", 1),
        ("payment.cancelled", "cancelled", 2),
    ]


def test_an_authorization_is_withdrawn_and_counts_for_nothing(world: World) -> None:
    option = world.authorized("25.00")
    done = world.resources.payments.cancel(option.payment.id).payment
    assert done.status == "cancelled"
    assert world.operation_now(option).status == "cancelled"
    assert world.held() == (atomic("100"), 0, atomic("100"))
    assert world.balance_now().spent_atomic == 0
    world.finish()
    assert world.sent() == 0
    assert world.authorized("100.00").payment.status == "processing"


def test_what_waits_again_after_a_failure_can_be_cancelled(world: World) -> None:
    option = world.authorized("25.00")
    world.fail("transfer")
    world.finish()
    assert world.paid(option.payment.id).status == "awaiting_payment"
    done = world.resources.payments.cancel(option.payment.id).payment
    assert (done.status, world.option_now(option).status) == ("cancelled", "failed")


def test_what_was_seen_and_undone_can_be_cancelled(world: World) -> None:
    world.chain.mine(60)
    payment = paid(world)
    world.run()
    with pytest.raises(InvalidState):
        world.resources.payments.cancel(payment.payment.id)
    world.reorg(1)
    world.finish()
    done = world.resources.payments.cancel(payment.payment.id).payment
    assert done.status == "cancelled"


def test_a_key_cancels_once(world: World) -> None:
    payment = world.payment()

    def cancel() -> PaymentDetails:
        return world.resources.payments.cancel(payment.payment.id, idempotency_key=once("k"))

    assert answer_of(cancel) is None
    assert answer_of(cancel) is not None
    assert world.event_names(payment.payment.id)["payment.cancelled"] == 1
