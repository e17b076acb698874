"""A USDC that keeps a fee or blocks somebody, under our real contracts: on a real node alone.

The simulated chain has no tokens with rules of their own.
"""

from __future__ import annotations

import pytest

from payments_core.payments.destinations import ToWallet
from payments_core.payments.details import PaymentDetails
from payments_core.payments.refunds.record import Refund
from payments_core.payments.sends import NewSend
from tests.chains.evm.deployed import call
from tests.chains.scenes import ELSEWHERE, AnvilScene
from tests.service.deposit_harness import DepositHarness
from tests.service.payer import Payer
from tests.service.world import USDC, atomic


@pytest.fixture
def fee_world(anvil_world: AnvilScene) -> AnvilScene:
    """Where USDC keeps 1 % of every transfer from now on."""
    anvil_world.put_token("FeeToken")
    return anvil_world


@pytest.fixture
def blocking_world(anvil_world: AnvilScene) -> AnvilScene:
    """Where USDC can block who has it."""
    anvil_world.put_token("BlacklistToken")
    return anvil_world


def block(world: AnvilScene, holder: str, blocked: bool = True) -> None:
    world.node.do(world.wallet, USDC.address, call("setBlocked(address,bool)", holder, blocked))


def escrow_of(payment: PaymentDetails) -> str:
    return str(payment.payment.escrow_address)


class TestAFeeOnTransfer:
    def test_of_a_wallets_payment_what_arrived_counts(self, fee_world: AnvilScene) -> None:
        world = fee_world
        payment = world.payment("25.00")
        world.spend("25.00", escrow_of(payment))
        world.finish()
        short = world.paid(payment.payment.id)
        assert (short.status, short.labels) == ("awaiting_payment", ("underpaid",))
        assert short.received_atomic == atomic("24.75")
        assert world.newest(escrow_of(payment)) == atomic("24.75")

    def test_of_a_vaults_payment_what_arrived_counts(self, fee_world: AnvilScene) -> None:
        world = fee_world
        option = world.authorized("25.00")
        world.finish()
        short = world.paid(option.payment.id)
        assert (short.status, short.labels) == ("awaiting_payment", ("underpaid",))
        assert short.received_atomic == atomic("24.75")
        assert world.held() == (atomic("75"), 0, atomic("75"))
        assert world.operation_now(option).status == "confirmed"

    def test_the_recipient_of_a_release_gets_less_than_was_released(
        self, fee_world: AnvilScene
    ) -> None:
        world = fee_world
        payment = world.payment("24.75")
        world.spend("25.00", escrow_of(payment))
        world.finish()
        done = world.paid(payment.payment.id)
        assert (done.status, done.settled_atomic) == ("succeeded", atomic("24.75"))
        assert world.newest(escrow_of(payment)) == 0
        assert world.held(world.merchant)[0] == atomic("24.5025")  # what is there, not the books

    def test_a_deposit_settles_and_the_vault_has_what_arrived(self, fee_world: AnvilScene) -> None:
        world = fee_world
        harness = DepositHarness(world)
        world.spend("10.00", harness.address)
        world.finish()
        assert harness.story == [("settled", None)]
        assert harness.only.amount_atomic == atomic("9.9")
        assert world.held()[0] == atomic("109.801")
        assert world.newest(harness.address) == 0

    def test_a_send_pays_out_what_came_through_the_transit_escrow(
        self, fee_world: AnvilScene
    ) -> None:
        world = fee_world
        to = ToWallet(address=ELSEWHERE)
        new = NewSend(amount="25.00", account_id=world.payer.id, destination=to)
        created = world.resources.payments.send(new).payment
        world.finish()
        assert world.paid(created.id).status == "succeeded"
        assert world.newest(ELSEWHERE) == atomic("24.5025")
        assert world.held() == (atomic("75"), 0, atomic("75"))


class TestWhoIsBlocked:
    def test_a_blocked_escrow_cannot_be_paid(self, blocking_world: AnvilScene) -> None:
        world = blocking_world
        payer = Payer(world, "25.00")
        block(world, escrow_of(payer.payment))
        option = payer.select(payer.option())
        payer.submit(option, world.spend("25.00", escrow_of(payer.payment)))
        world.finish()
        assert (payer.paid().status, payer.paid().received_atomic) == ("awaiting_payment", 0)
        assert world.receipts(payer.payment) == []

    def test_a_blocked_vault_fails_for_good_and_the_payer_can_try_again(
        self, blocking_world: AnvilScene
    ) -> None:
        world = blocking_world
        block(world, world.vault_address())
        payment = world.payment("25.00")
        option = world.authorize(world.option(payment))
        world.finish()
        failed = world.paid(payment.payment.id)
        assert (failed.status, failed.received_atomic) == ("awaiting_payment", 0)
        assert world.operation_now(option).status == "failed"
        assert world.option_now(option).status == "failed"
        assert world.held() == (atomic("100"), 0, atomic("100"))
        block(world, world.vault_address(), blocked=False)
        world.authorize(world.option(payment))
        world.finish()
        assert world.paid(failed.id).status == "succeeded"

    @pytest.mark.parametrize("who", ["escrow", "recipient"])
    def test_a_release_that_is_blocked_asks_for_a_decision(
        self, blocking_world: AnvilScene, who: str
    ) -> None:
        world = blocking_world
        payment = world.payment("25.00")
        world.spend("25.00", escrow_of(payment))
        vault = world.vault_address(world.merchant)
        blocked = escrow_of(payment) if who == "escrow" else vault
        block(world, blocked)
        world.finish()
        stuck = world.paid(payment.payment.id)
        assert (stuck.status, stuck.labels) == ("action_required", ("execution_failed",))
        assert stuck.settled_atomic == 0
        assert world.newest(escrow_of(payment)) == atomic("25")
        block(world, blocked, blocked=False)
        world.reconcile(payment, "retry_execution")
        world.finish()
        done = world.paid(stuck.id)
        assert (done.status, done.settled_atomic) == ("succeeded", atomic("25"))
        assert world.newest(vault) == atomic("25")

    def test_a_blocked_payer_gets_no_refund_and_the_merchant_keeps_the_funds(
        self, blocking_world: AnvilScene
    ) -> None:
        world = blocking_world
        payment = world.payment("25.00")
        world.spend("25.00", escrow_of(payment))
        world.finish()
        block(world, world.wallet)
        refund = world.refund(payment)
        world.finish()
        assert world.get(Refund, refund.id).status == "failed"
        assert world.paid(payment.payment.id).refunded_atomic == 0
        assert world.held(world.merchant) == (atomic("25"), 0, atomic("25"))

    def test_a_deposit_of_a_blocked_vault_fails_and_the_funds_stay_where_they_are(
        self, blocking_world: AnvilScene
    ) -> None:
        world = blocking_world
        harness = DepositHarness(world)
        block(world, world.vault_address())
        world.spend("5.00", harness.address)
        world.finish()
        assert harness.story == [("failed", "transaction_failed")]
        assert world.newest(harness.address) == atomic("5")
