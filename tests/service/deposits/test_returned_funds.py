"""Funds that a recipient sent back, on a chain that changes its mind, and of another asset."""

from __future__ import annotations

import attrs
import pytest

from payments_core.chains.outbox.record import ReturnAddress
from payments_core.chains.port import TransactionView
from payments_core.deposits.record import Deposit
from payments_core.money import Atomic
from payments_core.payments.destinations import ToWallet
from payments_core.payments.record import Payment
from payments_core.payments.sends import NewSend
from payments_core.storage.maintenance import scan_all
from tests.service.chains.test_chain_views import look_through
from tests.service.deposit_harness import DepositHarness, armed
from tests.service.world import OTHER_WALLET, USDC, World, atomic
from tests.shipped import CHAINS

OTHER_CHAIN = 137
TWO_TOKENS = next(id for id, entry in CHAINS.items() if len(entry.tokens) > 1)


@pytest.fixture
def sent(memory_world: World) -> Payment:
    """A send that is final."""
    to = ToWallet(address=OTHER_WALLET)
    new = NewSend(amount="25.00", account_id=memory_world.payer.id, destination=to)
    payment: Payment = memory_world.resources.payments.send(new).payment
    memory_world.finish()
    return payment


def return_address(world: World) -> str:
    [row] = [one.record for one in scan_all(world.storage, ReturnAddress)]
    return row.address


def deposits(world: World) -> list[Deposit]:
    return [one.record for one in scan_all(world.storage, Deposit)]


def test_one_that_a_reorg_undoes_after_it_counted_counts_no_more(
    memory_world: World, sent: Payment
) -> None:
    world, harness = memory_world, DepositHarness(memory_world)
    worker = world.service.worker("sandbox")
    world.chain.transfer(USDC.address, None, return_address(world), atomic("25"), "back")
    harness.scan()
    while [it.status for it in deposits(world)] != ["confirmed"]:
        world.system.advance(1)
        worker.run_due(1)
    harness.hold_sweeps(60)
    world.run()
    assert world.paid(sent.id).returned_atomic == atomic("25")
    world.chain.reorg(20)
    harness.finish()
    assert [it.status for it in deposits(world)] == ["failed"]
    shown = world.paid(sent.id)
    assert (shown.status, shown.returned_atomic, shown.labels) == ("succeeded", 0, ("returned",))
    reported = [name for name, _, _ in world.reported_events(sent.id)]
    assert reported[-2:] == ["payment.late", "payment.reorged"]
    world.chain.transfer(USDC.address, None, return_address(world), atomic("25"), "back")
    harness.finish()
    world.finish()
    assert world.paid(sent.id).returned_atomic == atomic("25")
    assert world.held() == (atomic("100"), 0, atomic("100"))


def test_a_transfer_of_nothing_from_their_address_hides_none(
    memory_world: World, sent: Payment
) -> None:
    """Anybody can call `transferFrom` of a token with no amount, in any name."""
    world = memory_world
    back = world.chain.transfer(USDC.address, None, return_address(world), atomic("25"), "back")

    def beside_nothing(view: TransactionView | None) -> TransactionView | None:
        if view is None or view.hash != back:
            return view
        [log] = view.logs
        nothing = attrs.evolve(
            log,
            position=1,
            log_index=log.log_index + 1,
            sender=log.recipient,
            recipient=OTHER_WALLET,
            amount_atomic=Atomic(0),
        )
        return attrs.evolve(view, logs=(log, nothing))

    look_through(world, beside_nothing)
    world.finish()
    assert [it.status for it in deposits(world)] == ["settled"]
    assert world.paid(sent.id).returned_atomic == atomic("25")


def test_a_failed_sweep_of_them_is_sent_again_whole(memory_world: World, sent: Payment) -> None:
    """Their address is an escrow, which may pay others too."""
    world, harness = memory_world, DepositHarness(memory_world)
    armed(world, "transfer")
    world.chain.transfer(USDC.address, None, return_address(world), atomic("25"), "back")
    harness.finish()
    assert [it.status for it in deposits(world)] == ["failed"]
    world.resources.deposits.check(world.payer.id)
    harness.finish()
    assert [it.status for it in deposits(world)] == ["settled"]
    assert world.held() == (atomic("100"), 0, atomic("100"))


def test_on_another_chain_it_is_a_deposit_there_and_no_return(
    memory_world: World, sent: Payment
) -> None:
    world = memory_world
    sandbox = world.resources.sandbox
    to = return_address(world)
    sandbox.transfer(OTHER_CHAIN, "USDC", "5.00", to=to)
    world.finish()
    [deposit] = deposits(world)
    assert (deposit.status, deposit.chain_id) == ("settled", OTHER_CHAIN)
    assert deposit.account_id == world.payer.id
    assert world.paid(sent.id).returned_atomic == 0
    assert "payment.late" not in world.event_names(sent.id)


def test_a_payment_by_another_way_has_no_address_to_watch(memory_world: World) -> None:
    """A funding, a release and a sweep come from addresses that are watched in any case."""
    world = memory_world
    world.authorized("25.00")
    harness = DepositHarness(world)
    harness.send("5.00")
    world.finish()
    harness.finish()
    assert world.sent() == 3
    assert list(scan_all(world.storage, ReturnAddress)) == []


TOKENS = [asset.symbol for asset in CHAINS[TWO_TOKENS].tokens]


@pytest.mark.parametrize("back", TOKENS)
@pytest.mark.parametrize("symbol", TOKENS)
def test_only_the_token_that_was_sent_is_a_return(
    memory_world: World, symbol: str, back: str
) -> None:
    """Another token of the same chain is a deposit of the account, and no part of the Payment."""
    world, amount = memory_world, "25.00"
    sandbox = world.resources.sandbox
    vault = world.resources.accounts.read(world.payer.id).vaults[0].address
    sandbox.transfer(TWO_TOKENS, symbol, amount, to=vault)
    world.advance(60)
    new = NewSend(
        amount=amount,
        account_id=world.payer.id,
        destination=ToWallet(address=OTHER_WALLET),
        chain_id=TWO_TOKENS,
        asset_symbol=symbol,
    )
    payment = world.resources.payments.send(new).payment
    world.finish()
    assert world.paid(payment.id).status == "succeeded"
    sandbox.transfer(TWO_TOKENS, back, "5.00", to=return_address(world))
    world.finish()
    [deposit] = deposits(world)
    assert (deposit.status, deposit.asset_symbol) == ("settled", back)
    shown = world.paid(payment.id)
    if back == symbol:
        assert (shown.returned_atomic, shown.labels) == (atomic("5"), ("returned",))
    else:
        assert (shown.returned_atomic, shown.labels) == (0, ())
    assert world.event_names(payment.id)["payment.late"] == (back == symbol)
    held = {
        row.asset.symbol: row.total_atomic
        for row in world.resources.accounts.read_balances(world.payer.id)
        if row.asset.chain_id == TWO_TOKENS
    }
    assert held == {**dict.fromkeys(TOKENS, 0), back: atomic("5")}
