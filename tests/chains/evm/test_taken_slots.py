"""An operator that cannot send: without gas, with its key in use elsewhere, killed; a real node."""

from __future__ import annotations

import pytest

from payments_core.chains.outbox.record import OutboundTransfer
from payments_core.deposits.record import Deposit
from payments_core.payments.destinations import ToWallet
from payments_core.payments.refunds.record import Refund
from payments_core.payments.sends import NewSend
from tests.chains.scenes import ELSEWHERE, AnvilScene
from tests.service.deposit_harness import DepositHarness
from tests.service.faults import Crashed, FaultyChain
from tests.service.world import BASE, atomic

FEE = 10**11


@pytest.fixture
def world(anvil_world: AnvilScene) -> AnvilScene:
    """On a real node."""
    return anvil_world


def take(world: AnvilScene, slot: int) -> bytes:
    """A transaction that somebody else signs with the operator's key, into that slot."""
    chain = world.chain
    signed = chain._sign_as(world.environment_id, slot, world.operator, b"", 21_000)
    return bytes(signed.raw)


def taken(world: AnvilScene, slot: int = 0) -> None:
    """Somebody else has used the operator's slot."""
    world.node.receipt(world.node.ask("eth_sendRawTransaction", "0x" + take(world, slot).hex()))


class TestWithoutGas:
    def test_all_waits_and_goes_on_when_there_is_gas_again(self, world: AnvilScene) -> None:
        world.node.ask("anvil_setBalance", world.operator, "0x0")
        option = world.authorized("25.00")
        world.advance(120)
        assert world.paid(option.payment.id).status == "processing"
        assert world.operation_now(option).status in ("authorized", "unknown")
        assert world.held() == (atomic("100"), atomic("25"), atomic("75"))
        assert world.sent() == 0
        first = world.outgoing(world.operation_now(option).outgoing_id)
        world.node.ask("anvil_setBalance", world.operator, hex(10**20))
        world.advance(60)
        world.finish()
        assert world.paid(option.payment.id).status == "succeeded"
        [receipt] = world.resources.payments.list_receipts(option.payment.id).receipts.records
        assert receipt.transaction_hash == first[0][0]  # the bytes that were stored before
        assert world.sent() == 2


class TestASlotThatSomebodyElseTook:
    def test_before_a_vaults_transfer_is_passed_over(self, world: AnvilScene) -> None:
        taken(world)
        option = world.authorized("25.00")
        world.advance(120)
        world.finish()
        assert world.operation_now(option).status == "confirmed"
        done = world.paid(option.payment.id)
        assert (done.status, done.received_atomic) == ("succeeded", atomic("25"))
        assert world.held() == (atomic("75"), 0, atomic("75"))
        assert world.newest(world.vault_address(world.merchant)) == atomic("25")
        assert world.sent() == 3

    def test_after_it_was_broadcast_fails_it_too(self, world: AnvilScene) -> None:
        payment = world.payment("25.00")
        option = world.authorize(world.option(payment))
        world.stop_mining()
        world.run()
        assert world.operation_now(option).status == "broadcast"
        world.mine_alone(take(world, 0))
        world.advance(120)
        world.finish()
        assert world.operation_now(option).status == "failed"
        assert world.paid(payment.payment.id).status == "awaiting_payment"
        assert world.held() == (atomic("100"), 0, atomic("100"))
        outgoing = world.get(OutboundTransfer, str(world.operation_now(option).outgoing_id))
        assert outgoing.status == "failed"

    def test_it_is_not_failed_before_that_is_final(self, world: AnvilScene) -> None:
        option = world.authorized("25.00")
        world.stop_mining()
        world.run()
        world.mine_alone(take(world, 0))
        world.stop_mining()
        world.advance(120)
        assert world.operation_now(option).status in ("broadcast", "unknown", "authorized")
        raw = world.outgoing(world.operation_now(option).outgoing_id)[0][1]
        world.node.ask("anvil_reorg", 1, [["0x" + raw.hex(), 0]])  # ours after all
        world.is_mining = True
        world.advance(120)
        world.node.ask("evm_setAutomine", True)
        world.finish()
        assert world.operation_now(option).status == "confirmed"
        assert world.paid(option.payment.id).status == "succeeded"
        assert world.held() == (atomic("75"), 0, atomic("75"))

    def test_before_a_release_is_passed_over(self, world: AnvilScene) -> None:
        taken(world)
        payment = world.payment("25.00")
        world.spend("25.00", str(payment.payment.escrow_address))
        world.finish()
        world.advance(120)
        assert world.paid(payment.payment.id).status == "succeeded"
        assert world.newest(world.vault_address(world.merchant)) == atomic("25")
        assert world.newest(str(payment.payment.escrow_address)) == 0
        assert world.sent() == 2

    def test_of_a_release_that_was_broadcast_asks_for_a_decision(self, world: AnvilScene) -> None:
        payment = world.payment("25.00")
        world.spend("25.00", str(payment.payment.escrow_address))
        world.look()
        world.stop_mining()
        world.chain.mine(world.final_after)
        while world.paid(payment.payment.id).status != "executing":
            world.advance(1)
        world.mine_alone(take(world, 0))
        world.advance(120)
        world.finish()
        failed = world.paid(payment.payment.id)
        assert (failed.status, failed.labels) == ("action_required", ("execution_failed",))
        assert world.newest(world.vault_address(world.merchant)) == 0
        world.reconcile(payment, "retry_execution")
        world.advance(60)
        world.finish()
        assert world.paid(failed.id).status == "succeeded"
        assert world.newest(world.vault_address(world.merchant)) == atomic("25")
        assert world.sent() == 2

    def test_before_a_send_is_passed_over(self, world: AnvilScene) -> None:
        taken(world)
        to = ToWallet(address=ELSEWHERE)
        new = NewSend(amount="25.00", account_id=world.payer.id, destination=to)
        created = world.resources.payments.send(new)
        world.advance(120)
        world.finish()
        assert world.paid(created.payment.id).status == "succeeded"
        assert world.held() == (atomic("75"), 0, atomic("75"))
        assert world.newest(ELSEWHERE) == atomic("25")

    def test_what_comes_behind_it_is_sent_also_after_a_reorg(self, world: AnvilScene) -> None:
        taken(world)
        first = world.authorized("10.00")
        world.advance(120)
        world.finish()
        assert world.operation_now(first).status == "confirmed"
        option = world.authorized("25.00")
        world.run()
        assert world.operation_now(option).status == "broadcast"
        world.reorg(1)
        world.finish()
        assert world.paid(option.payment.id).status == "succeeded"
        assert world.held() == (atomic("65"), 0, atomic("65"))
        assert world.sent() == 5

    def test_before_a_refund_and_a_sweep_is_passed_over(self, world: AnvilScene) -> None:
        payment = world.payment("25.00")
        world.spend("25.00", str(payment.payment.escrow_address))
        world.finish()
        taken(world, 1)
        refund = world.refund(payment)
        world.run()
        world.advance(120)
        world.finish()
        assert world.get(Refund, refund.id).status == "succeeded"
        assert world.held(world.merchant) == (0, 0, 0)
        taken(world, 3)
        harness = DepositHarness(world)
        world.spend("5.00", harness.address)
        world.advance(120)
        world.finish()
        assert [world.get(Deposit, it.id).status for it in harness.all()] == ["settled"]
        assert world.newest(harness.address) == 0


class TestKilledBetweenStoringAndSending:
    def test_the_same_bytes_go_out_at_the_next_start(self, world: AnvilScene) -> None:
        option = world.authorized("25.00")

        class Dies(FaultyChain):
            def broadcast(self, signed: object) -> None:
                raise Crashed

        world.service = world.restarted(chains={BASE: Dies(world.chain, 0, lambda call: call())})
        with pytest.raises(Crashed):
            world.run()
        [(hash, _)] = world.outgoing(world.operation_now(option).outgoing_id)
        assert world.sent() == 0
        assert world.node.ask("eth_getTransactionByHash", hash) is None
        world.service = world.restarted()
        world.advance(120)  # longer than the dead process' lease
        world.finish()
        assert world.paid(option.payment.id).status == "succeeded"
        assert world.operation_now(option).transaction_hash == hash
        assert world.chain.transaction(hash).block is not None
        assert world.sent() == 2
        assert world.held() == (atomic("75"), 0, atomic("75"))
