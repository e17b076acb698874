"""Tokens of the watch list at a deposit address: reported, and credited to nobody."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import pytest

from payments_core.accounts.record import Account
from payments_core.assets import NATIVE_ADDRESS, WATCH_LIST, Asset
from payments_core.chains.port import (
    AddressSpec,
    Chain,
    Contract,
    TransactionView,
    TransferIntent,
    TransferLog,
)
from payments_core.deposits.record import Deposit
from payments_core.errors import (
    DependencyFailed,
    DestinationNotAllowed,
    InsufficientPermissions,
    InvalidState,
    NotFound,
    ResourceConflict,
    ValidationFailed,
)
from payments_core.money import Atomic
from tests.service.chains.test_chain_views import forgotten, look_through, waiting
from tests.service.payments.receipts.test_misdirected import NAMES
from tests.service.payments.refunds.test_refunds import restricted_key
from tests.service.world import BASE, OTHER_WALLET, USDC, WALLET, World

TOKENS = [token for token in WATCH_LIST if token.address != NATIVE_ADDRESS]
"""Those that arrive with a log."""

AT_BASE = next(token for token in WATCH_LIST if token.chain_id == BASE)


def deposit_wrongly(
    world: World, token: Asset, amount: int = 5_000_000, source: str = WALLET
) -> str:
    """A transfer of a token to the payer's deposit address; the address."""
    issued = world.resources.deposits.issue_address(world.payer.id, BASE)
    chain = world.service.chains[token.chain_id]
    chain.transfer(token.address, None, source, amount, f"give-{next(NAMES)}")
    chain.transfer(token.address, source, issued.address.address, amount, f"pay-{next(NAMES)}")
    world.service.parts.scanner("sandbox").wake(token.chain_id)
    return issued.address.address


def only_deposit(world: World) -> Deposit:
    [deposit] = world.resources.deposits.list(world.payer.id).records
    return deposit


def rejected(world: World, deposit: Deposit, token: Asset) -> dict[str, Any]:
    """What each event of a rejected deposit of 5.00 says, beside the version of its status."""
    return {
        "accountId": world.payer.id,
        "depositId": deposit.id,
        "status": "rejected",
        "reason": "wrong_token",
        "chainId": token.chain_id,
        "assetSymbol": token.symbol,
        "tokenAddress": token.address,
        "amountAtomic": "5000000",
        "from": WALLET,
        "transactionHash": deposit.transaction_hash,
    }


@pytest.mark.parametrize("token", TOKENS, ids=lambda token: token.id)
def test_every_token_of_the_watch_list_is_reported(memory_world: World, token: Asset) -> None:
    world = memory_world
    address = deposit_wrongly(world, token)
    world.finish()
    deposit = only_deposit(world)
    assert (deposit.status, deposit.rejection_reason) == ("rejected", "wrong_token")
    [event] = [one for one in world.events() if one.name == "deposit.misdirected"]
    assert event.payload == {**rejected(world, deposit, token), "statusVersion": 2}
    assert world.get(Account, world.payer.id).labels == ("misdirected",)
    chain = world.service.chains[token.chain_id]
    assert chain.balances(token.address, [address]).amounts == {address: 5_000_000}
    assert world.resources.deposits.check(world.payer.id).deposits == (deposit,)


def test_a_second_one_labels_the_account_once(world: World) -> None:
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


def test_a_token_in_place_of_another_labels_the_account_too(memory_world: World) -> None:
    """A reorg may change what a transaction moves, before anybody has looked again."""
    world = memory_world
    deposit_wrongly(world, USDC)
    world.advance(1)
    assert only_deposit(world).status == "detected"

    def in_another_token(view: TransactionView | None) -> TransactionView | None:
        assert view is not None
        logs = [attrs.evolve(log, token_address=AT_BASE.address) for log in view.logs]
        return attrs.evolve(view, logs=tuple(logs))

    look_through(world, in_another_token)
    world.system.advance(60)
    world.service.worker("sandbox").run_due(50)
    deposit = only_deposit(world)
    assert (deposit.status, deposit.asset_symbol) == ("rejected", AT_BASE.symbol)
    assert world.get(Account, world.payer.id).labels == ("misdirected",)


# The way back.


def give_back(world: World, deposit: Deposit, **more: Any) -> Deposit:
    return world.resources.deposits.send_back(world.payer.id, deposit.id, **more)


@pytest.mark.parametrize("token", TOKENS, ids=lambda token: token.id)
def test_every_such_token_goes_back_once(memory_world: World, token: Asset) -> None:
    world = memory_world
    address = deposit_wrongly(world, token)
    world.finish()
    deposit, credited = only_deposit(world), world.held()
    give_back(world, deposit)
    with pytest.raises(ResourceConflict, match="on its way back"):
        give_back(world, deposit)
    world.finish()
    world.finish()
    after = only_deposit(world)
    assert after.sent_back is not None
    assert (after.status, after.sent_back.status) == ("rejected", "succeeded")
    chain = world.service.chains[token.chain_id]
    vault = chain.derive(AddressSpec(world.environment_id, "vault", world.payer.id))
    held = chain.balances(token.address, [address, vault, WALLET]).amounts
    assert held == {address: 0, vault: 0, WALLET: 5_000_000}
    with pytest.raises(ResourceConflict, match="was sent back"):
        give_back(world, deposit)
    assert only_deposit(world) == after
    assert world.event_names()["deposit.misdirected"] == 1
    [event] = [one for one in world.events() if one.name == "deposit.returned"]
    assert event.payload == {
        **rejected(world, deposit, token),
        "statusVersion": 3,
        "destination": WALLET,
        "returnTransactionHash": after.sent_back.transaction_hash,
    }
    [paid_back] = [log for log in _logs_of(chain, after) if log.recipient == WALLET]
    assert paid_back.amount_atomic == 5_000_000
    assert world.held() == credited


@pytest.mark.parametrize("failing", [1, 2])
def test_a_transfer_that_fails_is_reported_and_tried_again_from_where_the_funds_are(
    world: World, failing: int
) -> None:
    deposit_wrongly(world, AT_BASE)
    world.finish()
    deposit = only_deposit(world)
    give_back(world, deposit)
    if failing == 2:
        while _swept_by(world) is None:
            world.system.advance(1)
            world.service.worker("sandbox").run_due(1)
    world.fail("transfer")
    world.finish()
    after = only_deposit(world)
    assert after.sent_back is not None
    assert (after.sent_back.status, after.sent_back.failure) == ("failed", "transaction_failed")
    assert (after.sent_back.swept_by is not None) == (failing == 2)
    names = world.event_names()
    assert (names["deposit.misdirected"], names["deposit.returned"]) == (2, 0)
    give_back(world, deposit)
    world.finish()
    world.finish()
    assert world.event_names()["deposit.returned"] == 1
    chain = world.service.chains[BASE]
    assert chain.balances(AT_BASE.address, [WALLET]).amounts == {WALLET: 5_000_000}
    assert world.sent() == 3


def sweep_as_stranger(world: World, amount: int) -> None:
    """On a real chain anybody may call `sweepAll`, and the vault gets what is there then."""
    deposit = only_deposit(world)
    intent = TransferIntent(
        f"sweep-all-{next(NAMES)}",
        "env_stranger",
        AT_BASE.address,
        Contract("deposit", world.payer.id, deposit.address),
        world.vault_address(),
        Atomic(amount),
    )
    world.chain.broadcast(world.chain.prepare(intent, 0))


@pytest.mark.parametrize("swept", [1, 4_999_999, 5_000_000])
@pytest.mark.parametrize("is_late", [False, True])
def test_what_a_stranger_has_swept_of_it_goes_back_from_the_vault(
    memory_world: World, swept: int, is_late: bool
) -> None:
    world = memory_world
    deposit_wrongly(world, AT_BASE)
    world.finish()
    deposit = only_deposit(world)
    if is_late:  # after the request: the first attempt fails, and the next knows it
        give_back(world, deposit)
        world.hold_sends(60)
    sweep_as_stranger(world, swept)
    world.advance(90)
    world.finish()
    if is_late:
        failed = only_deposit(world).sent_back
        assert failed is not None and failed.failure == "transaction_failed"
        assert world.event_names()["deposit.misdirected"] == 2
    give_back(world, deposit)
    world.finish()
    world.finish()
    after = only_deposit(world)
    assert after.sent_back is not None and after.sent_back.status == "succeeded"
    holders = [deposit.address, world.vault_address(), WALLET]
    held = world.chain.balances(AT_BASE.address, holders).amounts
    assert [held[holder] for holder in holders] == [0, 0, 5_000_000]
    vaults = world.resources.accounts.read(world.payer.id).vaults
    assert [v.status for v in vaults if v.chain_id == BASE] == ["deployed"]


def test_a_chain_that_does_not_answer_sends_nothing_back(memory_world: World) -> None:
    world = memory_world
    deposit_wrongly(world, AT_BASE)
    world.finish()
    deposit = only_deposit(world)
    for see in (forgotten, waiting):
        look_through(world, see)
        with pytest.raises(DependencyFailed):
            give_back(world, deposit)
    assert only_deposit(world) == deposit


def test_it_is_refused_for_what_is_credited_and_for_what_is_not_there(memory_world: World) -> None:
    world = memory_world
    deposit_wrongly(world, USDC)
    world.finish()
    deposit = only_deposit(world)
    with pytest.raises(InvalidState):
        give_back(world, deposit)
    with pytest.raises(NotFound):
        world.resources.deposits.send_back(world.merchant.id, deposit.id)
    with pytest.raises(NotFound):
        world.resources.deposits.send_back(world.payer.id, "deposit_" + 24 * "0")


@pytest.mark.parametrize("source", ["0x" + 40 * "0", AT_BASE.address, USDC.address])
def test_what_nobody_holds_sent_needs_a_destination(memory_world: World, source: str) -> None:
    world = memory_world
    deposit_wrongly(world, AT_BASE, source=source)
    world.finish()
    deposit = only_deposit(world)
    with pytest.raises(ValidationFailed, match="destination is required"):
        give_back(world, deposit)
    with pytest.raises(DestinationNotAllowed):
        give_back(world, deposit, destination=deposit.address)
    give_back(world, deposit, destination=OTHER_WALLET)
    world.finish()
    world.finish()
    chain = world.service.chains[BASE]
    assert chain.balances(AT_BASE.address, [OTHER_WALLET]).amounts == {OTHER_WALLET: 5_000_000}


def test_a_stranger_as_destination_needs_a_standard_key(memory_world: World) -> None:
    world = memory_world
    deposit_wrongly(world, AT_BASE)
    world.finish()
    deposit, limited = only_deposit(world), restricted_key(world)
    with pytest.raises(InsufficientPermissions):
        world.service.acting_as(limited).deposits.send_back(
            world.payer.id, deposit.id, OTHER_WALLET
        )
    assert world.service.acting_as(limited).deposits.send_back(world.payer.id, deposit.id).sent_back


def test_the_accounts_own_vault_is_no_destination(memory_world: World) -> None:
    """It would keep a token that it is not credited with."""
    world = memory_world
    deposit_wrongly(world, AT_BASE)
    world.finish()
    with pytest.raises(ValidationFailed, match="own vault"):
        give_back(world, only_deposit(world), destination=world.vault_address())
    assert only_deposit(world).sent_back is None


def test_a_reorg_withdraws_what_is_not_signed(memory_world: World) -> None:
    world = memory_world
    deposit_wrongly(world, AT_BASE)
    world.advance_until(lambda: only_deposit(world).status == "rejected", 5)
    give_back(world, only_deposit(world))
    world.hold_sends(120)
    world.reorg(30)
    world.finish()
    world.finish()
    gone = only_deposit(world)
    assert (gone.status, gone.failure) == ("failed", "reorged")
    assert gone.sent_back is not None
    assert (gone.sent_back.status, gone.sent_back.failure) == ("failed", "funds_reorged")
    assert world.sent() == 0


def _logs_of(chain: Chain, deposit: Deposit) -> Sequence[TransferLog]:
    """The transfers of the transaction that a deposit names as the one that sent it back."""
    assert deposit.sent_back is not None
    hash = str(deposit.sent_back.transaction_hash)
    view = chain.transactions([hash])[hash]
    assert view is not None
    return view.logs


def _swept_by(world: World) -> str | None:
    sent_back = only_deposit(world).sent_back
    return sent_back.swept_by if sent_back is not None else None
