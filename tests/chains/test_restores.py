"""A storage that is restored at each step of a transfer: the money moves once.

The chain goes on as it was. What was sent after the backup is in a pool, in a block or final.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

import attrs
import pytest

from payments_core.chains.outbox.record import OutboundTransfer, Sender
from payments_core.chains.port import SignedTransaction
from payments_core.deposits.record import Deposit
from payments_core.maintenance.after_restore import fill_nonces
from payments_core.payments.destinations import ToWallet
from payments_core.payments.record import Payment
from payments_core.payments.refunds.record import Refund
from payments_core.payments.sends import NewSend
from payments_core.storage.maintenance import scan_all
from tests.chains.backups import Backup, Unsent, Unsigned, look_through, transfers
from tests.chains.evm.nodes import Refused
from tests.chains.scenes import ELSEWHERE, AnvilScene, Scene
from tests.service.deposit_harness import DepositHarness
from tests.service.faults import Crashed
from tests.service.world import BASE, OTHER_WALLET, atomic


@attrs.frozen
class Moved:
    """Where money arrives that moved once, how much, and how the owner of the transfer stands."""

    recipient: str
    amount: int
    read_status: Callable[[], str]
    status: str


def send(world: Scene, amount: str = "25.00", to: str = ELSEWHERE) -> Moved:
    new = NewSend(amount=amount, account_id=world.payer.id, destination=ToWallet(address=to))
    payment = world.resources.payments.send(new).payment
    return Moved(to, atomic(amount), lambda: world.paid(payment.id).status, "succeeded")


def fund(world: Scene) -> Moved:
    option = world.authorized("25.00")
    to = world.vault_address(world.merchant)

    def read_status() -> str:
        assert world.paid(option.payment.id).received_atomic == atomic("25")
        assert world.operation_now(option).status == "confirmed"
        return world.paid(option.payment.id).status

    return Moved(to, atomic("25"), read_status, "succeeded")


def release(world: Scene) -> Moved:
    payment = world.payment("25.00")
    world.spend("25.00", str(payment.payment.escrow_address))
    world.look()
    world.advance(20)
    assert world.paid(payment.payment.id).status == "accepted"
    to = world.vault_address(world.merchant)
    return Moved(to, atomic("25"), lambda: world.paid(payment.payment.id).status, "succeeded")


def release_with_excess(world: Scene) -> Moved:
    """The escrow could pay a second time, as far as the contract is concerned."""
    payment = world.payment("25.00")
    world.spend("60.00", str(payment.payment.escrow_address))
    world.look()
    world.advance(20)
    to = world.vault_address(world.merchant)
    return Moved(to, atomic("25"), lambda: world.paid(payment.payment.id).status, "succeeded")


def sweep(world: Scene) -> Moved:
    harness = DepositHarness(world)
    world.spend("5.00", harness.address)
    world.look()
    world.advance(20)
    [deposit] = harness.all()
    to = world.vault_address(world.payer)
    return Moved(to, atomic("104"), lambda: world.get(Deposit, deposit.id).status, "settled")


def refund(world: Scene) -> Moved:
    """From the vault of the recipient, which has had its release."""
    given = world.refund(world.settled, to=OTHER_WALLET)
    return Moved(
        OTHER_WALLET, atomic("10"), lambda: world.get(Refund, given.id).status, "succeeded"
    )


OWNERS = (send, fund, release, release_with_excess, sweep, refund)


def prepare(world: Scene, owner: Callable[[Scene], Moved]) -> None:
    """A transfer that is known and final, so that the sender is no new one."""
    first = send(world, "1.00", OTHER_WALLET) if owner is not refund else None
    if owner is refund:
        settled = world.payment("10.00")
        world.authorize(world.option(settled))
        world.finish()
        assert world.paid(settled.payment.id).status == "succeeded"
        world.settled = settled  # type: ignore[attr-defined]
    world.finish()
    assert first is None or first.read_status() == "succeeded"


def check_moved_once(world: Scene, moved: Moved, sent: int) -> None:
    for _ in range(3):
        world.advance(60)
        world.finish()
    assert world.newest(moved.recipient) == moved.amount
    assert moved.read_status() == moved.status
    assert world.sent() == sent


@pytest.mark.parametrize("is_final", [False, True], ids=["in-a-block", "final"])
@pytest.mark.parametrize("owner", OWNERS)
class TestBeforeItWasSigned:
    def test_the_transaction_that_moved_the_money_is_the_transfers(
        self, world: Scene, owner: Callable[[Scene], Moved], is_final: bool
    ) -> None:
        prepare(world, owner)
        look_through(world, Unsigned(world.chain))
        moved = owner(world)
        world.run()
        backup = Backup(world)
        unsigned = [it for it in transfers(world) if it.raw is None]
        assert len(unsigned) == 1
        before = world.sent()
        world.service = world.restarted()
        while world.sent() == before:
            world.advance(1)
        if is_final:
            world.finish()
        sent = world.sent()
        backup.restore(world)
        more = 1 if owner is fund else 0  # what arrived in escrow is released
        check_moved_once(world, moved, max(sent, before + 1 + more))
        closed = world.get(OutboundTransfer, unsigned[0].id)
        assert (closed.status, closed.raw) == ("signed", "")
        assert closed.transaction_hash is not None
        view = world.chain.transaction(closed.transaction_hash)
        assert view.succeeded


class TestInTheQueue:
    def test_each_that_moved_is_closed_and_what_did_not_move_is_sent(self, world: Scene) -> None:
        prepare(world, send)
        look_through(world, Unsigned(world.chain))
        moved = [send(world, "5.00"), send(world, "6.00", OTHER_WALLET), send(world, "5.00")]
        world.run()
        backup = Backup(world)
        world.service = world.restarted()
        while world.sent() < 3:
            world.advance(1)
        assert world.sent() >= 3
        world.finish()
        backup.restore(world)
        again = send(world, "7.00", world.wallet)
        before = world.newest(world.wallet)
        world.finish()
        world.finish()
        assert world.newest(ELSEWHERE) == atomic("10")
        assert world.newest(OTHER_WALLET) == atomic("7")
        assert world.newest(world.wallet) - before == atomic("7")
        assert [it.read_status() for it in (*moved, again)] == ["succeeded"] * 4
        assert world.sent() == 5

    def test_what_the_storage_lost_altogether_is_passed_over(self, world: Scene) -> None:
        prepare(world, send)
        backup = Backup(world)
        send(world, "5.00")
        send(world, "6.00")
        world.finish()
        backup.restore(world)
        again = send(world, "7.00", OTHER_WALLET)
        check_moved_once(world, attrs.evolve(again, amount=atomic("8.00")), 4)
        assert world.newest(ELSEWHERE) == atomic("11")
        assert world.held() == (atomic("81"), 0, atomic("81"))

    def test_a_release_that_is_made_again_from_receipts_found_again_pays_once(
        self, world: Scene
    ) -> None:
        """Its transfer has another id than the one that was lost."""
        prepare(world, send)
        payment = world.payment("25.00")
        backup = Backup(world)
        world.spend("60.00", str(payment.payment.escrow_address))
        world.finish()
        assert world.paid(payment.payment.id).status == "succeeded"
        sent = world.sent()
        backup.restore(world)
        other = send(world, "1.00", world.vault_address(world.merchant))  # goes first
        world.finish()
        world.finish()
        assert world.paid(payment.payment.id).status == "succeeded"
        assert world.newest(world.vault_address(world.merchant)) == atomic("26")
        assert other.read_status() == "succeeded"
        assert world.sent() == sent + 1


class TestSigned:
    @pytest.mark.parametrize("owner", OWNERS)
    def test_the_same_bytes_are_sent_and_were_sent(
        self, world: Scene, owner: Callable[[Scene], Moved]
    ) -> None:
        prepare(world, owner)
        look_through(world, Unsigned(world.chain))
        moved = owner(world)
        world.run()
        look_through(world, Unsent(world.chain))
        with pytest.raises(Crashed):
            world.advance(120)
        backup = Backup(world)
        world.service = world.restarted()
        world.finish()
        world.finish()
        sent = world.sent()
        backup.restore(world)
        check_moved_once(world, moved, sent)

    @pytest.mark.parametrize("is_final", [False, True], ids=["sent", "in-a-block"])
    def test_what_was_sent_goes_on(self, world: Scene, is_final: bool) -> None:
        prepare(world, send)
        moved = send(world)
        world.run()
        if is_final:
            world.advance(1)
        backup = Backup(world)
        world.finish()
        backup.restore(world)
        check_moved_once(world, moved, 2)


class TestOnARealNode:
    @pytest.fixture
    def world(self, anvil_world: AnvilScene) -> AnvilScene:
        return anvil_world

    def test_in_the_pool_nothing_is_signed_until_it_is_final(
        self, world: AnvilScene, caplog: pytest.LogCaptureFixture
    ) -> None:
        prepare(world, send)
        look_through(world, Unsigned(world.chain))
        moved = send(world)
        world.run()
        backup = Backup(world)
        world.service = world.restarted()
        world.stop_mining()
        world.advance(60)
        assert len(world.pooled_fees()) == 1
        backup.restore(world)
        later = send(world, "3.00", OTHER_WALLET)
        with caplog.at_level(logging.CRITICAL):
            world.advance(60)
        [alarm] = [it.getMessage() for it in caplog.records if "it was restored" in it.getMessage()]
        assert "has used 2 nonces, 1 of them final" in alarm
        assert len(world.pooled_fees()) == 1
        assert [it.raw for it in transfers(world)[1:]] == [None, None]
        world.node.ask("evm_setAutomine", True)
        world.node.ask("evm_mine")
        world.is_mining = True
        check_moved_once(world, moved, 3)
        assert later.read_status() == "succeeded"
        assert world.newest(OTHER_WALLET) == atomic("4")

    def test_dropped_from_the_pool_it_waits_until_an_operator_fills_the_nonce(
        self, world: AnvilScene
    ) -> None:
        prepare(world, send)
        look_through(world, Unsigned(world.chain))
        moved = send(world)
        world.run()
        backup = Backup(world)
        world.service = world.restarted()
        world.stop_mining()
        world.advance(60)
        [(_, waiting)] = world.outgoing(transfers(world)[-1].id)
        backup.restore(world)
        world.advance(1)
        world.node.ask("anvil_dropAllTransactions")
        world.is_mining = True
        world.node.ask("evm_setAutomine", True)
        world.advance(600)
        assert world.sent() == 1
        assert moved.read_status() == "processing"
        filled = fill_nonces(
            world.service.parts.ports, {BASE: world.chain}, world.environment_id, BASE
        )
        assert [one.nonce for one in filled] == [1]
        assert (
            fill_nonces(world.service.parts.ports, {BASE: world.chain}, world.environment_id, BASE)
            == ()
        )
        check_moved_once(world, moved, 3)
        with pytest.raises(Refused, match="nonce too low"):
            world.node.ask("eth_sendRawTransaction", "0x" + waiting.hex())

    def test_the_lost_replacement_of_known_bytes_is_the_transfers(self, world: AnvilScene) -> None:
        prepare(world, send)
        moved = send(world)
        world.stop_mining()
        world.run()
        outgoing = transfers(world)[-1]
        [(hash, raw)] = world.outgoing(outgoing.id)
        backup = Backup(world)
        raised = world.chain.bump(world.environment_id, SignedTransaction(hash, raw))
        world.mine_alone(raised.raw)
        backup.restore(world)
        check_moved_once(world, moved, 2)
        [closed] = [it for it in transfers(world) if it.id == outgoing.id]
        assert (closed.transaction_hash, closed.replacements) == (hash, 1)
        assert world.get(Payment, closed.owner_id).release_hash == raised.hash

    def test_a_search_goes_on_where_it_stopped(self, world: AnvilScene) -> None:
        prepare(world, send)
        look_through(world, Unsigned(world.chain))
        moved = send(world)
        world.run()
        backup = Backup(world)
        world.chain.mine(300)
        world.service = world.restarted()
        world.advance(1)
        world.chain.mine(300)
        backup.restore(world)

        class Narrow(Unsent):
            max_scan_blocks = 2

            broadcast = Unsigned.broadcast

        look_through(world, Narrow(world.chain))
        world.advance(30)  # a look a second: a search that advances is no silence
        assert transfers(world)[-1].status == "signed"
        world.service = world.restarted()
        check_moved_once(world, moved, 2)
        [sender] = [one.record for one in scan_all(world.storage, Sender)]
        assert sender.next_slot == 2
