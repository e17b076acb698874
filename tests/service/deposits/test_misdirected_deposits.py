"""Tokens of the watch list at a deposit address: reported, and credited to nobody."""

from __future__ import annotations

import pytest

from payments_core.accounts.record import Account
from payments_core.assets import WATCH_LIST, Asset
from payments_core.deposits.record import Deposit
from tests.service.payments.receipts.test_misdirected import NAMES
from tests.service.world import BASE, WALLET, World

AT_BASE = next(token for token in WATCH_LIST if token.chain_id == BASE)


def deposit_wrongly(world: World, token: Asset, amount: int = 5_000_000) -> str:
    """A transfer of a token to the payer's deposit address; the address."""
    issued = world.service.deposits.issue_address(world.server, world.payer.id, BASE)
    chain = world.service.chains[token.chain_id]
    chain.transfer(token.address, None, WALLET, amount, f"give-{next(NAMES)}")
    chain.transfer(token.address, WALLET, issued.address.address, amount, f"pay-{next(NAMES)}")
    world.service.scanner("sandbox").wake(token.chain_id)
    return issued.address.address


def only_deposit(world: World) -> Deposit:
    [deposit] = world.service.deposits.list_deposits(world.server, world.payer.id).records
    return deposit


@pytest.mark.parametrize("token", WATCH_LIST, ids=lambda token: token.id)
def test_every_token_of_the_watch_list_is_reported(memory_world: World, token: Asset) -> None:
    world = memory_world
    address = deposit_wrongly(world, token)
    world.finish()
    deposit = only_deposit(world)
    assert (deposit.status, deposit.rejection_reason) == ("rejected", "wrong_token")
    [event] = [one for one in world.events() if one.name == "deposit.misdirected"]
    assert event.payload == {
        "accountId": world.payer.id,
        "depositId": deposit.id,
        "status": "rejected",
        "statusVersion": 2,
        "reason": "wrong_token",
        "chainId": token.chain_id,
        "assetSymbol": token.symbol,
        "tokenAddress": token.address,
        "amountAtomic": "5000000",
        "from": WALLET,
        "transactionHash": deposit.transaction_hash,
    }
    assert world.get(Account, world.payer.id).labels == ("misdirected",)
    chain = world.service.chains[token.chain_id]
    assert chain.balances(token.address, [address]).amounts == {address: 5_000_000}
    assert world.service.deposits.check(world.server, world.payer.id).deposits == (deposit,)


def test_a_second_one_labels_the_account_once(memory_world: World) -> None:
    world = memory_world
    for token in WATCH_LIST[:2]:
        deposit_wrongly(world, token)
        world.finish()
    assert world.get(Account, world.payer.id).labels == ("misdirected",)
    assert world.event_names()["deposit.misdirected"] == 2


def test_a_reorg_takes_it_back(memory_world: World) -> None:
    world = memory_world
    deposit_wrongly(world, AT_BASE)
    world.advance_until(lambda: only_deposit(world).status == "rejected", 5)
    world.reorg(30)
    world.finish()
    gone = only_deposit(world)
    assert (gone.status, gone.failure, gone.rejection_reason) == ("failed", "reorged", None)


def test_in_another_block_it_is_reported_again(memory_world: World) -> None:
    world = memory_world
    deposit_wrongly(world, AT_BASE)
    world.advance_until(lambda: only_deposit(world).status == "rejected", 5)
    world.reorg(30, reinclude=True)
    world.finish()
    assert only_deposit(world).status == "rejected"
    names = world.event_names()
    assert names["deposit.misdirected"] >= 1
    assert names["deposit.settled"] == 0
