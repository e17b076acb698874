"""Native coin at a deposit address: a check has its log made once, and it goes back."""

from __future__ import annotations

from itertools import count

import pytest

from payments_core.addresses import NATIVE_ADDRESS
from payments_core.chains.port import Contract, TransferIntent
from payments_core.deposits.record import Deposit
from payments_core.errors import DependencyFailed, ValidationFailed
from tests.service.payments.receipts.test_native_coin import coins_of
from tests.service.world import BASE, OTHER_WALLET, World

NAMES = count()
COINS = 10**15


def issue(world: World) -> str:
    return world.resources.deposits.issue_address(world.payer.id, BASE).address.address


def send_coin(world: World, address: str, amount: int = COINS) -> None:
    """A payer's mistake, which leaves no log; final."""
    world.chain.transfer(NATIVE_ADDRESS, None, address, amount, f"coins-{next(NAMES)}")
    world.chain.mine(5)


def deposits_of(world: World) -> tuple[Deposit, ...]:
    return tuple(world.resources.deposits.list(world.payer.id).records)


def test_a_check_has_the_log_made_once_and_the_coin_goes_back(world: World) -> None:
    address, check = issue(world), world.resources.deposits.check
    send_coin(world, address)
    world.finish()
    assert deposits_of(world) == ()  # no log says anything yet
    sent = world.sent()
    for _ in range(2):
        assert check(world.payer.id).deposits == ()
    world.run()
    check(world.payer.id)  # while the report is not final
    world.finish()
    [deposit] = deposits_of(world)
    assert (deposit.status, deposit.asset_symbol, deposit.amount_atomic) == (
        "rejected", "ETH", COINS,
    )  # fmt: skip
    check(world.payer.id)
    world.finish()
    assert world.sent() == sent + 1
    assert world.resources.accounts.read(world.payer.id).account.labels == ("misdirected",)
    with pytest.raises(ValidationFailed):  # nobody knows the sender
        world.resources.deposits.send_back(world.payer.id, deposit.id)
    world.resources.deposits.send_back(world.payer.id, deposit.id, OTHER_WALLET)
    world.finish()
    world.finish()
    assert coins_of(world, OTHER_WALLET) == COINS


def test_what_comes_later_gets_a_log_of_its_own(memory_world: World) -> None:
    world = memory_world
    address = issue(world)
    for amount in (COINS, 2 * COINS):
        send_coin(world, address, amount)
        world.resources.deposits.check(world.payer.id)
        world.finish()
        world.finish()
    assert sorted(deposit.amount_atomic for deposit in deposits_of(world)) == [COINS, 2 * COINS]


def test_only_the_chains_that_are_asked_and_have_an_address_are_looked_at(
    memory_world: World,
) -> None:
    world = memory_world
    send_coin(world, issue(world))
    sent = world.sent()
    world.resources.deposits.check(world.payer.id, 137)
    world.finish()
    assert world.sent() == sent


def test_a_stranger_may_have_the_log_made(memory_world: World) -> None:
    world = memory_world
    address = issue(world)
    send_coin(world, address)
    source = Contract("deposit", world.payer.id, address)
    intent = TransferIntent("out_y", "env_y", NATIVE_ADDRESS, source, address, COINS)
    world.chain.broadcast(world.chain.prepare(intent, 0))
    world.service.parts.scanner("sandbox").wake(BASE)
    world.finish()
    [deposit] = deposits_of(world)
    assert (deposit.status, deposit.asset_symbol) == ("rejected", "ETH")


def test_a_check_fails_if_the_chain_does_not_answer_about_coin(memory_world: World) -> None:
    world = memory_world
    issue(world)
    world.fail("balances")
    with pytest.raises(DependencyFailed):
        world.resources.deposits.check(world.payer.id)
