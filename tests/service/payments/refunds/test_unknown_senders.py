"""Senders that a chain names and that nobody can be paid at: they are unknown, and get nothing.

A chain may name the zero address (tokens were minted), a token's own contract, or an address of
this service. Each is tried by each operation that sends funds back without a destination.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest
from msgspec import UNSET

from payments_core.chains.port import AddressSpec
from payments_core.errors import (
    DestinationNotAllowed,
    InsufficientPermissions,
    ReconciliationActionNotAllowed,
    ValidationFailed,
)
from payments_core.payments.destinations import ToWallet
from payments_core.payments.details import PaymentDetails
from payments_core.payments.record import OFFRAMP_OWNER
from payments_core.payments.refunding.operations import NewRefund
from payments_core.payments.sends import NewSend
from tests.service.payments.refunds.test_refunds import restricted_key
from tests.service.world import BASE, OTHER_WALLET, STRANGER, USDC, WALLET, World, atomic
from tests.shipped import CHAINS

ZERO = "0x" + 40 * "0"


def _derived(kind: str, owner: str) -> Callable[[World], str]:
    return lambda world: str(world.chain.derive(AddressSpec(world.environment_id, kind, owner)))


def _other_escrow(world: World) -> str:
    return str(world.payment().payment.escrow_address)


def _deposit_address(world: World) -> str:
    return world.resources.deposits.issue_address(world.payer.id, BASE).address.address


def _paying_address(world: World) -> str:
    world.fund("1.00")
    to = ToWallet(address=STRANGER)
    new = NewSend(amount="1.00", account_id=world.payer.id, destination=to)
    sent = world.resources.payments.send(new).payment
    world.finish()
    return _derived("escrow", str(world.paid(sent.id).release_id))(world)


UNKNOWN: Mapping[str, Callable[[World], str]] = {
    "zero": lambda world: ZERO,
    **{
        f"token {asset.id}": lambda world, asset=asset: asset.address  # type: ignore[misc]
        for entry in CHAINS.values()
        for asset in entry.tokens
    },
    "another escrow": _other_escrow,
    "a deposit address": _deposit_address,
    "an address that has paid": _paying_address,
    "the operator": _derived("operator", "operator"),
    "the off-ramp address": _derived("escrow", OFFRAMP_OWNER),
    "the recipient's vault": lambda world: world.vault_address(world.merchant),
}


def pay_from(world: World, payment: PaymentDetails, source: str, amount: str) -> None:
    """A transfer that the chain shows as coming from an address that cannot send."""
    world.chain.mint(USDC.address, source, atomic(amount), f"give-{payment.payment.id}-{source}")
    escrow = str(payment.payment.escrow_address)
    world.chain.transfer(
        USDC.address, source, escrow, atomic(amount), f"pay-{payment.payment.id}-{source}"
    )
    world.service.parts.scanner("sandbox").wake(BASE)
    world.finish()


@pytest.fixture(params=UNKNOWN)
def sender(request: pytest.FixtureRequest, world: World) -> str:
    return UNKNOWN[request.param](world)


def test_a_refund_to_an_unknown_sender_needs_a_destination(world: World, sender: str) -> None:
    payment = world.payment("25.00")
    pay_from(world, payment, sender, "25.00")
    id = payment.payment.id
    assert world.paid(id).status == "succeeded"
    payments = world.resources.payments
    for make in (payments.refund, payments.refund_all, payments.plan_refund):
        for amount in (UNSET, "10.00"):
            with pytest.raises(ValidationFailed, match="destination is required") as refused:
                make(id, NewRefund(amount=amount))
            assert refused.value.fields[0].path == "destination"
    assert world.resources.payments.list_refunds(id).records == ()
    world.refund(payment, "25.00", OTHER_WALLET)
    world.finish()
    assert world.paid(id).status == "refunded"
    assert world.on_chain(OTHER_WALLET) == atomic("25")


def test_an_excess_of_an_unknown_sender_goes_where_it_is_named(world: World, sender: str) -> None:
    payment = world.payment("25.00")
    pay_from(world, payment, sender, "30.00")
    with pytest.raises(ReconciliationActionNotAllowed, match="give a destination"):
        world.reconcile(payment, "refund_excess")
    allowed = world.resources.payments.list_allowed_actions(payment.payment.id)
    assert "refund_excess" in allowed
    world.reconcile(payment, "refund_excess", destination=OTHER_WALLET)
    world.finish()
    after = world.paid(payment.payment.id)
    assert (after.status, after.excess_atomic, after.reconciliation.status) == (
        "succeeded",
        0,
        "resolved",
    )
    assert world.on_chain(OTHER_WALLET) == atomic("5")


def test_held_funds_of_an_unknown_sender_go_where_they_are_named(world: World, sender: str) -> None:
    payment = world.payment("25.00", expires_in_s=300)
    pay_from(world, payment, sender, "10.00")
    world.advance(600)
    assert world.paid(payment.payment.id).status == "action_required"
    with pytest.raises(ReconciliationActionNotAllowed, match="give a destination"):
        world.reconcile(payment, "refund")
    world.reconcile(payment, "refund", destination=OTHER_WALLET)
    world.finish()
    after = world.paid(payment.payment.id)
    assert (after.status, after.books.held_atomic) == ("refunded", 0)
    assert world.on_chain(OTHER_WALLET) == atomic("10")


def test_a_known_sender_beside_an_unknown_one_gets_its_own(world: World) -> None:
    payment = world.payment("25.00")
    pay_from(world, payment, ZERO, "10.00")
    world.pay(payment, "15.00")
    world.finish()
    refund = world.refund(payment)
    assert (refund.destination, refund.amount_atomic) == (WALLET, atomic("15"))


def test_a_destination_of_a_decision_is_checked_like_that_of_a_refund(
    world: World, sender: str
) -> None:
    payment = world.payment("25.00")
    world.pay(payment, "30.00")
    world.finish()
    for api in (
        lambda: world.reconcile(payment, "refund_excess", destination=sender),
        lambda: world.refund(payment, "5.00", sender),
    ):
        with pytest.raises((ValidationFailed, DestinationNotAllowed)):
            api()
    assert world.paid(payment.payment.id).refunding == ()


def test_a_destination_is_only_for_what_goes_back(world: World) -> None:
    payment = world.payment("25.00", expires_in_s=300)
    world.pay(payment, "10.00")
    world.advance(600)
    for action in ("accept", "write_off", "retry_execution"):
        with pytest.raises(ValidationFailed, match="destination is only for"):
            world.reconcile(payment, action, destination=WALLET)


def test_a_stranger_as_destination_of_a_decision_needs_a_standard_key(world: World) -> None:
    payment = world.payment("25.00")
    world.pay(payment, "30.00")
    world.finish()
    limited = restricted_key(world)
    with pytest.raises(InsufficientPermissions):
        world.service.acting_as(limited).payments.reconcile(
            payment.payment.id, "refund_excess", destination=OTHER_WALLET
        )
    assert (
        world.service.acting_as(limited)
        .payments.reconcile(payment.payment.id, "refund_excess", destination=WALLET)
        .refunds
    )
