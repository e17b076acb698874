"""Native coin at an escrow: it gets a log when the Payment expires, and goes back once."""

from __future__ import annotations

import contextlib
from itertools import count

import pytest

from payments_core.addresses import NATIVE_ADDRESS
from payments_core.chains.port import (
    Contract,
    SignedTransaction,
    TransferIntent,
)
from payments_core.chains.typed_data import ZERO_ADDRESS
from payments_core.errors import ValidationFailed
from payments_core.evolve import evolve
from payments_core.misdirected.coin_reports import find_coin
from payments_core.networks import NativeCurrency, shipped_networks
from payments_core.payments.details import PaymentDetails
from payments_core.storage.memory.adapter import MemoryStorage
from tests.service.faults import Crashed
from tests.service.payments.receipts.test_misdirected import receipts_of, reported
from tests.service.payments.receipts.test_return_crashes import FAULTS, work
from tests.service.world import BASE, OTHER_WALLET, WALLET, World

NAMES = count()
COINS = 10**15
EXPIRES_IN_S = 300


def send_coin(world: World, payment: PaymentDetails, amount: int = COINS) -> None:
    """A payer's mistake, which leaves no log; final."""
    escrow = str(payment.payment.escrow_address)
    chain = world.chain
    chain.transfer(NATIVE_ADDRESS, None, WALLET, amount, f"coins-{next(NAMES)}")
    chain.transfer(NATIVE_ADDRESS, WALLET, escrow, amount, f"mistake-{next(NAMES)}")
    chain.mine(5)
    world.service.parts.scanner("sandbox").wake(BASE)


def report_as_stranger(world: World, payment: PaymentDetails, amount: int = COINS) -> None:
    """Another operator has the contracts make the log, as anybody may."""
    escrow = str(payment.payment.escrow_address)
    source = Contract("escrow", payment.payment.id, escrow)
    intent = TransferIntent("out_x", "env_x", NATIVE_ADDRESS, source, escrow, amount)
    signed = world.chain.prepare(intent, 0)
    type(world.chain).broadcast(world.chain, signed)


def find_unlogged(world: World, payment: PaymentDetails) -> int:
    escrow = payment.payment.escrow
    assert escrow is not None
    found = world.chain.find_unlogged_coin(world.environment_id, [escrow])
    return found.get(escrow.address, 0)


def coins_of(world: World, holder: str) -> int:
    world.chain.mine(3)
    return int(world.chain.balances(NATIVE_ADDRESS, [holder]).amounts[holder])


def expire(world: World) -> None:
    for _ in range(8):
        world.advance(EXPIRES_IN_S // 4)


def test_coin_is_noticed_when_the_payment_expires_and_goes_back(world: World) -> None:
    payment = world.payment("25.00", expires_in_s=EXPIRES_IN_S)
    send_coin(world, payment)
    world.finish()
    assert receipts_of(world, payment) == []  # no log says anything yet
    expire(world)
    after = world.paid(payment.payment.id)
    assert (after.status, after.labels, after.misdirected) == ("expired", ("misdirected",), 1)
    [event] = reported(world, payment)
    assert (event["assetSymbol"], event["tokenAddress"]) == ("ETH", NATIVE_ADDRESS)
    assert (event["amountAtomic"], event["from"]) == (str(COINS), ZERO_ADDRESS)
    [receipt] = receipts_of(world, payment)
    with pytest.raises(ValidationFailed):  # nobody knows the sender
        world.reconcile(payment, "return_misdirected", receipt_id=receipt.id)
    world.reconcile(payment, "return_misdirected", receipt_id=receipt.id, destination=OTHER_WALLET)
    world.finish()
    [returned] = receipts_of(world, payment)
    assert returned.sent_back is not None
    assert returned.sent_back.status == "succeeded"
    assert coins_of(world, OTHER_WALLET) == COINS
    assert world.paid(after.id).reconciliation.resolution == "return_misdirected"
    assert world.journal(after.id) == []


def test_a_payment_without_coin_expires_as_before(memory_world: World) -> None:
    world = memory_world
    payment = world.payment("25.00", expires_in_s=EXPIRES_IN_S)
    sent = world.sent()
    expire(world)
    after = world.paid(payment.payment.id)
    assert (after.status, after.labels) == ("expired", ())
    assert world.sent() == sent


def test_a_stranger_may_have_the_log_made_before_and_it_counts_once(
    memory_world: World,
) -> None:
    world = memory_world
    payment = world.payment("25.00", expires_in_s=EXPIRES_IN_S)
    send_coin(world, payment)
    assert find_unlogged(world, payment) == COINS
    report_as_stranger(world, payment)
    world.service.parts.scanner("sandbox").wake(BASE)
    sent = world.sent()
    expire(world)
    after = world.paid(payment.payment.id)
    assert (after.status, after.misdirected) == ("expired", 1)
    assert len(reported(world, payment)) == 1
    assert find_unlogged(world, payment) == 0
    assert world.sent() == sent


def test_a_reorg_takes_the_log_back_and_it_is_made_again(memory_world: World) -> None:
    world = memory_world
    payment = world.payment("25.00", expires_in_s=EXPIRES_IN_S)
    send_coin(world, payment)
    world.advance(EXPIRES_IN_S)
    world.advance_until(lambda: world.paid(payment.payment.id).misdirected == 1, 2, most=40)
    world.reorg(20)  # the log's block, and not that of the coin
    for _ in range(4):
        world.advance(60)
    [receipt] = receipts_of(world, payment)
    assert receipt.holds_misdirected
    assert world.paid(payment.payment.id).misdirected == 1


def test_a_stranger_may_make_the_log_after_a_reorg_and_the_coin_counts_once(
    memory_world: World,
) -> None:
    """Ours had succeeded, and now fails: nothing is reversed, since it moved nothing."""
    world = memory_world
    payment = world.payment("25.00", expires_in_s=EXPIRES_IN_S)
    send_coin(world, payment)
    world.advance(EXPIRES_IN_S)
    world.advance_until(lambda: world.paid(payment.payment.id).misdirected == 1, 2, most=40)
    world.advance(15)  # ours is final
    world.reorg(40)  # the log's block, and not that of the coin
    assert find_unlogged(world, payment) == COINS
    report_as_stranger(world, payment)
    for _ in range(8):
        world.advance(60)
    [held] = [receipt for receipt in receipts_of(world, payment) if receipt.holds_misdirected]
    assert held.amount_atomic == COINS
    assert world.paid(payment.payment.id).misdirected == 1
    assert find_unlogged(world, payment) == 0


def test_no_chain_is_asked_whose_coin_is_a_token_too(memory_world: World) -> None:
    world = memory_world
    payment = world.payment("25.00")
    send_coin(world, payment)
    escrow, chains = payment.payment.escrow, world.service.chains
    assert escrow is not None
    shipped = shipped_networks()
    found = find_coin(chains, shipped, world.environment_id, BASE, escrow)
    assert found is not None
    assert found.amount_atomic == COINS
    dollars = evolve(shipped[BASE], native_currency=NativeCurrency("Dollar", "USDC", 18))
    for known, networks in ((chains, shipped.merge(dollars)), ({}, shipped)):
        assert find_coin(known, networks, world.environment_id, BASE, escrow) is None


def test_a_log_that_could_not_be_made_is_an_alarm(
    memory_world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world = memory_world
    payment = world.payment("25.00", expires_in_s=EXPIRES_IN_S)
    send_coin(world, payment)
    world.fail("transfer")
    expire(world)
    assert world.paid(payment.payment.id).misdirected == 0
    escrow = str(payment.payment.escrow_address)
    assert f"native coin at {escrow} was not noticed: transaction_failed" in caplog.text


def test_a_stranger_who_is_faster_makes_ours_fail_and_it_is_noticed_once(
    memory_world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world = memory_world
    payment = world.payment("25.00", expires_in_s=EXPIRES_IN_S)
    send_coin(world, payment)
    broadcast, sent = world.chain.broadcast, []

    def overtaken(signed: SignedTransaction) -> None:
        if not sent:
            sent.append(signed)
            report_as_stranger(world, payment)
        broadcast(signed)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(world.chain, "broadcast", overtaken)
        expire(world)
    assert sent
    after = world.paid(payment.payment.id)
    assert (after.status, after.misdirected) == ("expired", 1)
    assert "was not noticed" not in caplog.text


@pytest.mark.parametrize("fault", FAULTS)
def test_the_log_is_made_once_whatever_fails(fault: str) -> None:
    world = World(MemoryStorage()).open()
    for at in range(1, 200):
        payment = world.payment("25.00", expires_in_s=EXPIRES_IN_S)
        send_coin(world, payment)
        world.clock.advance_to(world.clock.now() + EXPIRES_IN_S * 1_000 + 1_000)
        world.chain.mine(5)
        sent = world.sent()
        service, had_its_fault = FAULTS[fault](world, at)
        with contextlib.suppress(Crashed):
            work(world, service)
        for seconds in (110, 60, 60):  # the leases of a dead worker end meanwhile
            world.advance(seconds)
        after = world.paid(payment.payment.id)
        assert (after.status, after.misdirected) == ("expired", 1)
        assert world.sent() - sent == 1
        [receipt] = receipts_of(world, payment)
        assert receipt.amount_atomic == COINS
        if not had_its_fault():
            assert at > 5
            return
    raise AssertionError("it never ended")
