"""Transactions of ours that no block takes, on a real node: raised, and counted once."""

from __future__ import annotations

from itertools import pairwise

import pytest

from payments_core.chains.evm.transactions import decode_signed
from payments_core.chains.outbox.record import OutboundTransfer
from payments_core.deposits.record import Deposit
from payments_core.payments.details import OptionDetails
from payments_core.payments.refunds.record import Refund
from tests.chains.scenes import LOW_BASE_FEE, AnvilScene
from tests.service.deposit_harness import DepositHarness
from tests.service.world import BASE, USDC, atomic

PATIENCE_S = 30
RAISES = 3


@pytest.fixture
def world(anvil_world: AnvilScene) -> AnvilScene:
    """Where a transaction is bumped soon."""
    anvil_world.chain.bump_after_ms = PATIENCE_S * 1_000
    return anvil_world


def stuck(world: AnvilScene, raises: int = RAISES) -> None:
    """Blocks pass over what is to be sent now, and its fees are raised so often."""
    world.stop_mining()
    world.run()
    for _ in range(raises):
        world.pass_over(4)
        world.advance(3 * PATIENCE_S)  # a job whose bytes are refused looks once a minute


def stuck_option(world: AnvilScene) -> tuple[OptionDetails, list[tuple[str, bytes]]]:
    option = world.authorized("25.00")
    stuck(world)
    return option, world.outgoing(world.operation_now(option).outgoing_id)


def mined_funding(world: AnvilScene) -> list[str]:
    """The hashes of all transfers out of the payer's vault that are on the chain."""
    last = world.chain.heads().latest.number
    found = world.chain.scan([USDC.address], None, 0, last)
    return [it.transaction_hash for it in found if it.sender == world.vault_address()]


def test_raised_fees_keep_slot_purpose_and_every_hash(world: AnvilScene) -> None:
    option, signed = stuck_option(world)
    assert len(signed) == 1 + RAISES
    assert len({hash for hash, _ in signed}) == len(signed)
    all_bytes = [decode_signed(raw, chain_id=BASE)[0] for _, raw in signed]
    assert len({(it.nonce, it.to, it.data, it.value) for it in all_bytes}) == 1
    for before, after in pairwise(all_bytes):
        assert after.max_fee >= before.max_fee * 9 / 8
        assert after.max_priority_fee >= before.max_priority_fee * 9 / 8
    pooled = world.node.ask("txpool_content")["pending"]
    [ours] = [slots for sender, slots in pooled.items() if sender.lower() == world.operator.lower()]
    assert [it["hash"] for it in ours.values()] == [signed[-1][0]]  # the node took each of them
    assert world.paid(option.payment.id).status == "processing"
    world.mine_alone(signed[-1][1])
    world.finish()
    assert world.paid(option.payment.id).status == "succeeded"


@pytest.mark.parametrize("which", range(1 + RAISES))
def test_whichever_is_mined_counts_once_and_is_the_receipts(world: AnvilScene, which: int) -> None:
    option, signed = stuck_option(world)
    hash, raw = signed[which]
    world.mine_alone(raw)
    world.advance(60)
    world.finish()
    done = world.paid(option.payment.id)
    assert (done.status, done.received_atomic, done.settled_atomic) == (
        "succeeded",
        atomic("25"),
        atomic("25"),
    )
    operation = world.operation_now(option)
    assert (operation.status, operation.transaction_hash) == ("confirmed", hash)
    [receipt] = world.resources.payments.list_receipts(done.id).receipts.records
    assert (receipt.status, receipt.transaction_hash) == ("verified", hash)
    assert mined_funding(world) == [hash]
    assert world.sent() == 2
    assert world.held() == (atomic("75"), 0, atomic("75"))
    assert world.newest(world.vault_address(world.merchant)) == atomic("25")


@pytest.mark.parametrize(("first", "then"), [(0, RAISES), (RAISES, 0)])
def test_a_reorg_may_swap_one_for_the_other(world: AnvilScene, first: int, then: int) -> None:
    option, signed = stuck_option(world)
    world.mine_alone(signed[first][1])
    world.advance(1)
    world.node.ask("anvil_reorg", 2, [["0x" + signed[then][1].hex(), 0]])
    world.look()
    world.advance(60)
    world.finish()
    done = world.paid(option.payment.id)
    assert (done.status, done.received_atomic) == ("succeeded", atomic("25"))
    counted = [
        it.transaction_hash
        for it in world.resources.payments.list_receipts(done.id).receipts.records
        if it.status == "verified"
    ]
    assert counted == [signed[then][0]]
    assert mined_funding(world) == [signed[then][0]]
    assert world.held() == (atomic("75"), 0, atomic("75"))


@pytest.mark.parametrize(("first", "then"), [(0, RAISES), (RAISES, 0)])
def test_a_reorg_may_swap_them_when_all_is_over(world: AnvilScene, first: int, then: int) -> None:
    option, signed = stuck_option(world)
    before = world.chain.heads().latest.number
    world.mine_alone(signed[first][1])
    for _ in range(40):
        world.advance(1)
    release = world.paid(option.payment.id)
    assert release.status == "succeeded"
    depth = world.chain.heads().latest.number - before
    world.node.ask("anvil_reorg", depth, [["0x" + signed[then][1].hex(), 0]])
    world.look()
    world.advance(60)
    world.finish()
    done = world.paid(option.payment.id)
    assert (done.status, done.labels) == ("succeeded", ("reorged",))
    assert (done.received_atomic, done.settled_atomic, done.excess_atomic) == (
        atomic("25"),
        atomic("25"),
        0,
    )
    assert mined_funding(world) == [signed[then][0]]
    assert world.sent() == 2
    assert world.newest(world.vault_address(world.merchant)) == atomic("25")


@pytest.mark.parametrize("which", [0, RAISES])
def test_a_release_is_released_once(world: AnvilScene, which: int) -> None:
    payment = world.payment("25.00")
    world.spend("25.00", str(payment.payment.escrow_address))
    world.look()
    while world.paid(payment.payment.id).status == "processing":
        world.node.ask("evm_setAutomine", False)  # before the worker comes to send it
        world.advance(1)
    stuck(world)
    executing = world.paid(payment.payment.id)
    assert executing.status == "executing"
    signed = world.outgoing(executing.release_id)
    assert len(signed) > 1
    hash, raw = signed[which]
    world.mine_alone(raw)
    world.advance(60)
    world.finish()
    done = world.paid(executing.id)
    assert (done.status, done.settled_atomic) == ("succeeded", atomic("25"))
    assert world.chain.transaction(hash).block is not None
    assert world.sent() == 1
    assert world.newest(world.vault_address(world.merchant)) == atomic("25")


@pytest.mark.parametrize("which", [0, RAISES])
def test_a_refund_and_a_sweep_behind_it_go_once(world: AnvilScene, which: int) -> None:
    payment = world.payment("25.00")
    before = world.newest(world.wallet)
    world.spend("25.00", str(payment.payment.escrow_address))
    world.finish()
    harness = DepositHarness(world)
    refund = world.refund(payment)
    stuck(world)
    assert world.get(Refund, refund.id).status == "submitted"
    signed = world.outgoing(world.get(Refund, refund.id).outgoing_id)
    assert len(signed) == 1 + RAISES
    world.mine_alone(signed[which][1])
    world.spend("5.00", harness.address)
    world.finish()
    assert world.get(Refund, refund.id).status == "succeeded"
    assert world.paid(payment.payment.id).status == "refunded"
    assert [world.get(Deposit, it.id).status for it in harness.all()] == ["settled"]
    assert world.newest(world.wallet) == before - atomic("5")
    assert world.sent() == 3


def test_what_is_behind_a_stuck_one_waits_and_comes_after_it(world: AnvilScene) -> None:
    options = [world.authorized(amount) for amount in ("10.00", "11.00", "12.00")]
    stuck(world)
    for option in options:
        assert world.paid(option.payment.id).status == "processing"
    slots = [
        world.get(OutboundTransfer, str(world.operation_now(it).outgoing_id)).slot for it in options
    ]
    assert sorted(slots) == [0, 1, 2]
    world.mine_at(LOW_BASE_FEE)
    world.is_mining = True
    world.node.ask("evm_setAutomine", True)
    world.advance(60)
    world.finish()
    assert {world.paid(option.payment.id).status for option in options} == {"succeeded"}
    assert len(mined_funding(world)) == 3
    assert world.sent() == 6
    assert world.held() == (atomic("67"), 0, atomic("67"))
