"""A chain that cannot be reached: its callers wait, then continue, on both kinds of chain."""

from __future__ import annotations

import pytest

from payments_core.errors import DependencyFailed
from payments_core.payments.destinations import ToWallet
from payments_core.payments.sends import NewSend
from tests.chains.scenes import ELSEWHERE, Scene
from tests.service.deposit_harness import DepositHarness
from tests.service.world import atomic


@pytest.fixture
def is_cabled() -> bool:
    return True


def test_a_request_that_needs_the_chain_is_refused_and_changes_nothing(world: Scene) -> None:
    option = world.option(world.payment("25.00"))
    before = world.paid(option.payment.id), world.operation_now(option)
    world.cut()
    with pytest.raises(DependencyFailed) as caught:
        world.authorize(option)
    assert caught.value.dependency == "chain"
    assert (world.paid(option.payment.id), world.operation_now(option)) == before
    world.mend()
    world.authorize(option)  # the same one-time action
    world.finish()
    assert world.paid(option.payment.id).status == "succeeded"


def test_an_authorization_is_sent_when_the_node_is_back(world: Scene) -> None:
    option = world.authorized("25.00")
    world.cut()
    world.advance(120)
    assert world.paid(option.payment.id).status == "processing"
    assert world.operation_now(option).status in ("authorized", "unknown")
    world.mend()
    world.advance(60)
    world.finish()
    done = world.paid(option.payment.id)
    assert (done.status, done.settled_atomic) == ("succeeded", atomic("25"))
    assert world.operation_now(option).status == "confirmed"
    assert world.sent() == 2


@pytest.mark.parametrize("status", ["processing", "executing"])
def test_a_payment_that_is_under_way_goes_on_when_the_node_is_back(
    world: Scene, status: str
) -> None:
    option = world.authorized("25.00")
    payment = world.resources.payments.read(option.payment.id)
    world.run()
    world.until(payment, status)
    world.cut()
    world.advance(120)
    assert world.paid(option.payment.id).status == status
    world.mend()
    world.advance(60)
    world.finish()
    done = world.paid(option.payment.id)
    assert (done.status, done.settled_atomic) == ("succeeded", atomic("25"))
    assert world.sent() == 2
    assert world.newest(world.vault_address(world.merchant)) == atomic("25")


def test_what_happened_on_the_chain_meanwhile_is_found(world: Scene) -> None:
    payment, harness = world.payment("25.00"), DepositHarness(world)
    escrow = str(payment.payment.escrow_address)
    world.cut()
    world.advance(30)
    world.mend()
    world.spend("25.00", escrow)
    world.spend("5.00", harness.address)
    world.cut()
    world.advance(30)
    assert world.paid(payment.payment.id).status == "awaiting_payment"
    world.mend()
    world.advance(60)
    world.finish()
    assert world.paid(payment.payment.id).status == "succeeded"
    assert harness.story == [("settled", None)]


def test_a_payment_and_a_send_can_be_made_while_the_node_is_away(world: Scene) -> None:
    world.held()  # the vault's balance is known from before
    world.cut()
    payment = world.payment("25.00")
    to = ToWallet(address=ELSEWHERE)
    new = NewSend(amount="10.00", account_id=world.payer.id, destination=to)
    with pytest.raises(DependencyFailed):
        world.resources.payments.send(new)
    assert payment.payment.escrow_address is not None
    world.mend()
    sent = world.resources.payments.send(new)
    world.finish()
    assert world.paid(sent.payment.id).status == "succeeded"
    assert world.newest(ELSEWHERE) == atomic("10")
