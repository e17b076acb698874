"""A refund fails for good: nothing has moved, and the amount can be refunded again."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from payments_core.chains.port import FinalBalances
from payments_core.chains.simulated.chain import SimulatedChain
from payments_core.errors import AmountOutOfRange
from payments_core.payments.details import PaymentDetails
from payments_core.payments.refunds.record import Refund
from tests.service.world import USDC, WALLET, World, atomic


def succeeded(world: World, amount: str = "25.00") -> PaymentDetails:
    """A Payment of 25.00 that a wallet paid, perhaps with more."""
    payment = world.payment("25.00")
    world.pay(payment, amount)
    world.finish()
    assert world.paid(payment.payment.id).status == "succeeded"
    return payment


def failed(world: World, refund: Refund) -> Refund:
    after = world.get(Refund, refund.id)
    assert (after.status, after.status_version) == ("failed", 3)
    assert after.failure == "transaction_failed"
    assert after.succeeded_at_ms is None
    return after


def test_a_refund_that_reverts_gives_the_reservation_back(world: World) -> None:
    payment = succeeded(world)
    before = world.paid(payment.payment.id)
    refund = world.refund(payment, "10.00")
    assert world.held(world.merchant) == (atomic("25"), atomic("10"), atomic("15"))
    world.fail("transfer")
    world.finish()
    failed(world, refund)
    assert world.held(world.merchant) == (atomic("25"), 0, atomic("25"))
    after = world.paid(before.id)
    assert (after.status, after.status_version) == (before.status, before.status_version)
    assert (after.refunded_atomic, after.books) == (0, before.books)
    reported = world.last_payload(after.id, "refund.failed")
    assert reported == {
        "paymentId": after.id,
        "refundId": refund.id,
        "status": "failed",
        "statusVersion": 3,
        "amountAtomic": str(atomic("10")),
    }
    names = world.event_names(after.id)
    assert (names["refund.created"], names["refund.failed"]) == (1, 1)
    assert names["payment.refunded"] == names["refund.succeeded"] == 0

    world.refund(payment)  # all of it is free again
    world.finish()
    done = world.paid(after.id)
    assert (done.status, done.refunded_atomic) == ("refunded", atomic("25"))
    assert world.on_chain(WALLET) == atomic("25")
    assert world.held(world.merchant) == (0, 0, 0)


def test_what_is_under_way_can_be_refunded_again_only_when_it_has_failed(world: World) -> None:
    payment = succeeded(world)
    world.refund(payment, "20.00")
    world.fail("transfer")
    with pytest.raises(AmountOutOfRange):
        world.refund(payment, "5.000001")
    world.finish()
    world.refund(payment, "25.00")
    world.finish()
    assert world.paid(payment.payment.id).status == "refunded"
    assert world.on_chain(WALLET) == atomic("25")


def test_a_vault_that_was_emptied_behind_our_back_fails_the_refund(world: World) -> None:
    payment = succeeded(world)
    refund = world.refund(payment, "10.00")
    world.drain(world.merchant)
    world.finish()
    failed(world, refund)
    assert world.held(world.merchant) == (0, 0, 0)
    assert world.paid(payment.payment.id).status == "succeeded"


def test_a_refund_from_escrow_that_fails_leaves_it_to_be_decided(world: World) -> None:
    payment = world.payment(expires_in_s=300)
    world.pay(payment, "10.00")
    world.advance(310)
    world.reconcile(payment, "refund")
    world.fail("transfer")
    world.finish()
    [refund] = world.resources.payments.list_refunds(payment.payment.id).records
    failed(world, refund)
    between = world.paid(payment.payment.id)
    assert (between.status, between.reconciliation.status) == ("action_required", "open")
    assert between.books.escrow == atomic("10") == world.on_chain(str(between.escrow_address))
    world.reconcile(payment, "refund")
    world.finish()
    done = world.paid(between.id)
    assert (done.status, done.refunded_atomic) == ("refunded", atomic("10"))
    assert (done.reconciliation.status, done.reconciliation.resolution) == ("resolved", "refund")
    assert world.on_chain(WALLET) == atomic("10")
    assert [item.status for item in world.resources.payments.list_refunds(done.id).records] == [
        "succeeded", "failed",
    ]  # fmt: skip


def test_after_a_failed_refund_another_decision_is_possible(world: World) -> None:
    payment = world.payment(expires_in_s=300)
    world.pay(payment, "10.00")
    world.advance(310)
    world.reconcile(payment, "refund")
    world.fail("transfer")
    world.finish()
    world.reconcile(payment, "accept")
    world.finish()
    done = world.paid(payment.payment.id)
    assert (done.status, done.settled_atomic) == ("succeeded", atomic("10"))
    assert world.on_chain(world.vault_address(world.merchant)) == atomic("10")


def test_a_refund_of_excess_that_fails_leaves_it_held(world: World) -> None:
    payment = succeeded(world, "30.00")
    world.reconcile(payment, "refund_excess")
    world.fail("transfer")
    world.finish()
    between = world.paid(payment.payment.id)
    assert (between.status, between.excess_atomic) == ("succeeded", atomic("5"))
    assert between.reconciliation.status == "open"
    assert world.event_names(between.id)["payment.reconciled"] == 0
    world.reconcile(payment, "refund_excess")
    world.finish()
    done = world.paid(between.id)
    assert (done.excess_atomic, done.reconciliation.status) == (0, "resolved")
    assert world.on_chain(WALLET) == atomic("5")


@pytest.mark.parametrize("operation", ["broadcast", "lost_answer", "any"])
def test_a_chain_that_does_not_answer_is_not_a_failed_refund(world: World, operation: str) -> None:
    payment = succeeded(world)
    refund = world.refund(payment, "10.00")
    world.fail(operation, times=3)
    world.finish()
    assert world.get(Refund, refund.id).status == "succeeded"
    assert world.sent() == 2
    assert world.on_chain(WALLET) == atomic("10")


@pytest.mark.parametrize("amount", ["10.00", "25.00"])
def test_an_older_balance_of_a_lagging_node_ends_no_reservation(
    world: World, monkeypatch: pytest.MonkeyPatch, amount: str
) -> None:
    """The funds have gone, and the node still shows them: they would be authorized twice."""
    payment = succeeded(world)
    refund = world.refund(payment, amount)
    address = world.vault_address(world.merchant)
    balances = SimulatedChain.balances
    old = world.chain.balances(USDC.address, [address])

    def lag(chain: SimulatedChain, token: str, holders: Sequence[str]) -> FinalBalances:
        return old if list(holders) == [address] else balances(chain, token, holders)

    with monkeypatch.context() as patched:
        patched.setattr(SimulatedChain, "balances", lag)
        world.finish()
        [pending] = world.resources.payments.list_refunds(payment.payment.id).records
        assert pending.status == "submitted"
        assert world.held(world.merchant)[1] == refund.amount_atomic
    world.advance(60)
    world.finish()
    left = atomic("25") - refund.amount_atomic
    assert world.held(world.merchant) == (left, 0, left)
    [done] = world.resources.payments.list_refunds(payment.payment.id).records
    assert done.status == "succeeded"
