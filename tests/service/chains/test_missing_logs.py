"""Nodes that show a transaction, and its logs only later: nothing has failed by that."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import attrs
import pytest

from payments_core.chains.port import ScannedTransfer, TransactionView
from payments_core.payments.destinations import ToWallet
from payments_core.payments.receipts.record import TrackedTransaction, tracked_transaction_id
from payments_core.payments.sends import NewSend
from payments_core.storage.jobs import Job
from tests.service.deposit_harness import DepositHarness
from tests.service.faults import FaultyChain
from tests.service.world import BASE, OTHER_WALLET, USDC, WALLET, World, atomic


class WithoutLogs(FaultyChain):
    """A chain that finds every transfer in a scan, and shows transactions without logs."""

    def __init__(self, world: World) -> None:
        super().__init__(world.chain, at=0, fault=lambda call: call(), until=-1)
        self.hides = self.finds_nothing = False

    def scan(
        self, tokens: Sequence[str], recipients: Sequence[str] | None, first: int, last: int
    ) -> tuple[ScannedTransfer, ...]:
        return () if self.finds_nothing else super().scan(tokens, recipients, first, last)

    def transaction(self, hash: str) -> TransactionView | None:
        return self._strip(super().transaction(hash))

    def transactions(self, hashes: Sequence[str]) -> Mapping[str, TransactionView | None]:
        return {hash: self._strip(view) for hash, view in super().transactions(hashes).items()}

    def _strip(self, view: TransactionView | None) -> TransactionView | None:
        return attrs.evolve(view, logs=()) if view and view.block and self.hides else view


@pytest.fixture
def world(memory_world: World) -> World:
    return memory_world


@pytest.fixture
def chain(world: World) -> WithoutLogs:
    chain = WithoutLogs(world)
    world.service = world.restarted(chains={BASE: chain})
    world.chain.mint(USDC.address, WALLET, atomic("100"), "wallet")
    world.chain.mine(5)
    world.run()
    return chain


def look(world: World) -> None:
    world.service.parts.scanner("sandbox").wake(BASE)
    world.run()


def hide_for_a_while(world: World, chain: WithoutLogs, meanwhile: Callable[[], None]) -> None:
    chain.hides = True
    look(world)
    world.advance(60)
    meanwhile()
    chain.hides = False
    look(world)
    world.advance(300)


def test_a_payment_counts_when_its_logs_are_shown(world: World, chain: WithoutLogs) -> None:
    payment = world.payment(expires_in_s=300)
    escrow = str(payment.payment.escrow_address)
    world.chain.transfer(USDC.address, WALLET, escrow, atomic("25"), "paid")

    def meanwhile() -> None:
        assert world.paid(payment.payment.id).status == "awaiting_payment"
        world.advance(600)
        assert world.paid(payment.payment.id).status == "awaiting_payment"

    hide_for_a_while(world, chain, meanwhile)
    done = world.paid(payment.payment.id)
    assert (done.status, done.labels) == ("succeeded", ())


def test_deposits_settle_when_their_logs_are_shown(world: World, chain: WithoutLogs) -> None:
    harness = DepositHarness(world)
    first = harness.send("5.00")
    harness.add_log(first, "1.00")
    hide_for_a_while(world, chain, lambda: None)
    assert sorted(one.amount_atomic for one in harness.all()) == [1_000_000, 5_000_000]
    assert {one.status for one in harness.all()} == {"settled"}


def test_a_transaction_with_many_deposits_is_asked_for_by_one_job(
    world: World, chain: WithoutLogs
) -> None:
    harness, other = DepositHarness(world), DepositHarness(world, world.account("other"))
    other.send("3.00")
    hash = harness.send("5.00")
    harness.add_log(hash, "1.00")
    harness.add_log(hash, "2.00", to=other.address)
    chain.hides = True
    harness.scan()
    lane = ("sandbox.chain", f"arrival:{BASE}:{hash}")
    jobs = world.storage.read(
        world.environment_id, lambda snapshot: snapshot.find(Job, "by_queue_lane", lane)
    )
    assert len(jobs.records) == 1
    chain.hides = False
    world.advance(300)
    assert sorted(one.amount_atomic for one in harness.all()) == [1_000_000, 5_000_000]
    assert sorted(one.amount_atomic for one in other.all()) == [2_000_000, 3_000_000]


def test_a_transfer_from_a_vault_has_not_failed(world: World, chain: WithoutLogs) -> None:
    option = world.authorized("25.00")

    def meanwhile() -> None:
        assert world.operation_now(option).status == "unknown"
        assert world.held() == (atomic("75"), atomic("25"), atomic("50"))

    hide_for_a_while(world, chain, meanwhile)
    assert world.operation_now(option).status == "confirmed"
    assert world.paid(option.payment.id).status == "succeeded"
    assert world.sent() == 2


def test_a_release_and_a_refund_have_not_failed(world: World, chain: WithoutLogs) -> None:
    payment = world.payment()
    escrow = str(payment.payment.escrow_address)
    world.chain.transfer(USDC.address, WALLET, escrow, atomic("25"), "paid")
    look(world)
    while world.paid(payment.payment.id).status != "executing":
        world.advance(1)

    def executing() -> None:
        assert world.paid(payment.payment.id).status == "executing"

    hide_for_a_while(world, chain, executing)
    assert world.paid(payment.payment.id).status == "succeeded"
    refund = world.refund(payment)
    hide_for_a_while(world, chain, lambda: None)
    assert world.get(type(refund), refund.id).status == "succeeded"
    assert world.held(world.merchant) == (0, 0, 0)
    assert world.sent() == 2


def test_a_send_has_not_failed(world: World, chain: WithoutLogs) -> None:
    to = ToWallet(address=OTHER_WALLET)
    new = NewSend(amount="25.00", account_id=world.payer.id, destination=to)
    payment = world.resources.payments.send(new).payment
    hide_for_a_while(world, chain, lambda: None)
    assert world.paid(payment.id).status == "succeeded"
    assert world.sent() == 1


def test_a_transaction_that_pays_nothing_in_another_block_is_decided(
    world: World, chain: WithoutLogs
) -> None:
    """A scan has found its transfer in a block that a reorg undid; there it had one."""
    payment = world.payment()
    escrow = str(payment.payment.escrow_address)
    hash = world.chain.transfer(USDC.address, WALLET, escrow, atomic("25"), "paid")
    world.service.parts.scanner("sandbox").wake(BASE)
    world.service.worker("sandbox").run_due(1)
    id = tracked_transaction_id(payment.payment.id, BASE, hash)
    found = world.get(TrackedTransaction, id)
    assert found.found_in == found.block_hash
    world.chain.reorg(1, reinclude=True)
    chain.hides = chain.finds_nothing = True
    look(world)
    world.advance(120)
    decided = world.get(TrackedTransaction, id)
    assert decided.block_hash not in (None, found.found_in)
    assert (decided.watched, decided.amount_atomic) == (False, 0)
    assert world.paid(payment.payment.id).status == "awaiting_payment"
