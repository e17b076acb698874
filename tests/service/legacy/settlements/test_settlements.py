"""Settlements: a signature pays a quote from its payer's vault, once."""

from __future__ import annotations

from typing import Any

import pytest

from payments_core.accounts.operations import NewWallet
from payments_core.engine.idempotency.record import AlreadyResponded
from payments_core.errors import (
    AccountSuspended,
    ActionAlreadyUsed,
    CapabilityNotActive,
    InsufficientBalance,
    InvalidState,
    NotFound,
    OptionLocked,
    PaymentExpired,
    PaymentsError,
    PolicyInactive,
    UnsupportedChain,
    ValidationFailed,
)
from payments_core.legacy.transactions.sources import Filters
from tests.service.faults import (
    FaultyStorage,
)
from tests.service.legacy.settlements.till import NO_QUOTE, POLYGON, SIGNER, STRANGER, Till
from tests.service.world import BASE, WALLET, World, once, write


def test_a_signature_pays_the_quote_from_the_vault(till: Till) -> None:
    quote = till.quote()
    operation = till.settle(quote)
    assert (operation.status, operation.amount) == ("authorized", 25_000_000)
    assert till.world.held() == (100_000_000, 25_000_000, 75_000_000)
    payment = till.payment(quote)
    assert (payment.status, payment.authorized) == ("processing", (operation.id,))
    [settled] = till.settled()
    assert (settled.signer, settled.operation_id) == (SIGNER.address, operation.id)
    till.world.finish()
    assert till.payment(quote).status == "succeeded"
    assert till.service.acting_as(till.world.server).legacy.read_quote(quote.id).is_done
    assert till.world.held() == (75_000_000, 0, 75_000_000)
    assert till.world.held(till.world.merchant)[0] == 25_000_000


def test_the_events_are_those_of_a_payment_that_a_vault_funds(memory_till: Till) -> None:
    till, world = memory_till, memory_till.world
    quote = till.quote()
    till.settle(quote)
    world.finish()
    names = world.event_names(quote.payment_id)
    option = world.authorized()
    world.finish()
    assert names == world.event_names(option.payment.id)


def test_a_transfer_that_fails_gives_the_funds_back_and_the_quote_stays_used(
    memory_till: Till,
) -> None:
    """The quote can be paid otherwise: by a transfer, or by v2."""
    till, world = memory_till, memory_till.world
    quote = till.quote()
    world.fail("transfer")
    till.settle(quote)
    world.advance(60)
    assert till.payment(quote).status == "awaiting_payment"
    assert world.held() == (100_000_000, 0, 100_000_000)
    with pytest.raises(ActionAlreadyUsed):
        till.settle(quote, nonce=2)
    world.authorize(
        world.option(till.service.acting_as(world.server).payments.read(quote.payment_id))
    )
    world.finish()
    assert (till.payment(quote).status, world.held()[0]) == ("succeeded", 75_000_000)


def test_a_quote_across_chains_is_settled_on_its_source(memory_till: Till) -> None:
    quote = memory_till.quote(destination_chain_id=POLYGON)
    memory_till.settle(quote)
    memory_till.world.finish()
    assert (
        memory_till.service.acting_as(memory_till.world.server).legacy.read_quote(quote.id).is_done
    )


def test_it_is_a_transaction_of_the_payer_of_its_own_type(till: Till) -> None:
    world = till.world
    operation = till.settle(till.quote())
    other = world.authorized()
    world.finish()
    transactions = till.service.acting_as(world.server).legacy
    found = {
        type: [
            (one.id, one.type, one.status)
            for one in transactions.list_transactions(
                world.payer.id, Filters(type=type)
            ).transactions
        ]
        for type in ("settlement", "payment", "deposit", None)
    }
    settled = (f"tx_{operation.id[-24:]}", "settlement", "completed")
    paid = (f"tx_{other.operation.id[-24:]}", "payment", "completed")
    assert found["settlement"] == [settled]
    assert found["payment"] == [paid]
    assert found["deposit"] == []
    assert sorted(found[None]) == sorted([settled, paid])
    read = transactions.read_transaction(settled[0])
    assert (read.type, read.payer.account_id) == ("settlement", world.payer.id)
    assert read.payee.account_id == world.merchant.id


def test_quote_and_nonce_work_once(till: Till) -> None:
    quote, other = till.quote(), till.quote()
    body = till.body(quote, nonce=7)
    till.send(body)
    for again in (body, till.body(quote, nonce=8)):
        with pytest.raises(ActionAlreadyUsed, match="quote"):
            till.send(again)
    with pytest.raises(ActionAlreadyUsed, match="nonce"):
        till.settle(other, nonce=7)
    assert till.payment(other).status == "awaiting_payment"
    till.world.finish()
    with pytest.raises(ActionAlreadyUsed):
        till.send(body)
    till.settle(other, nonce=8)
    till.world.finish()
    assert till.world.held() == (50_000_000, 0, 50_000_000)
    assert len(till.settled()) == 2


def test_a_nonce_has_256_bits(memory_till: Till) -> None:
    till, most = memory_till, 2**256 - 1
    body = till.body(till.quote(), nonce=most)
    body["payload"]["nonce"] = str(most)
    till.send(body)
    assert till.settled()[0].nonce == str(most)
    larger = till.body(till.quote())
    larger["payload"]["nonce"] = str(most + 1)
    assert till.faults_of(larger) == ["payload.nonce"]


def test_a_key_is_answered_again(memory_till: Till) -> None:
    till = memory_till
    body = till.body(till.quote())
    till.send(body, idempotency_key=once("one"))
    with pytest.raises(AlreadyResponded):
        till.send(body, idempotency_key=once("one"))
    assert till.world.held()[1] == 25_000_000


# Whose quote, and in which state.


def test_somebody_elses_quote_is_not_settled(memory_till: Till) -> None:
    """Who knows a quote's id pays it neither from the payer's vault nor from another's."""
    till, world = memory_till, memory_till.world
    till.link(STRANGER, world.merchant)
    quote = till.quote()
    merchants = world.vault_address(world.merchant)
    assert till.faults_of(till.body(quote, STRANGER)) == ["signature"]
    paths = till.faults_of(till.body(quote, STRANGER, vault=merchants))
    assert paths == ["domain.verifying_contract"]
    body = till.body(quote)
    body["payload"]["quoteId"] = NO_QUOTE
    with pytest.raises(NotFound):
        till.send(body)


def test_a_quote_that_names_no_account_has_no_vault(memory_till: Till) -> None:
    with pytest.raises(CapabilityNotActive):
        memory_till.settle(memory_till.quote(source_address=SIGNER.address))


def test_a_wallet_that_is_not_proven_signs_nothing(memory_world: World) -> None:
    till, world = Till(memory_world, funds=""), memory_world
    world.payer = world.account(
        "other", wallets=(NewWallet(address=STRANGER.address, chain_type="evm"),)
    )
    world.fund("50.00")
    world.advance(5)
    quote = till.quote()
    assert till.faults_of(till.body(quote, STRANGER)) == ["signature"]
    till.link(STRANGER)
    till.settle(quote, STRANGER)


def test_a_wallet_that_is_unlinked_meanwhile_signs_nothing(memory_till: Till) -> None:
    till, world = memory_till, memory_till.world
    quote = till.quote()
    [wallet] = till.service.acting_as(world.server).wallets.list(world.payer.id).records

    def unlink(call: Any) -> Any:
        till.service.acting_as(world.server).wallets.remove(world.payer.id, wallet.id)
        return call()

    storage = FaultyStorage(world.storage, 1, unlink, ("transact",))
    with pytest.raises(ValidationFailed):
        till.settle(quote, service=world.restarted(storage))
    assert (till.settled(), world.held()[1]) == ([], 0)


def test_what_v2_refuses_is_refused(memory_till: Till) -> None:
    till, world = memory_till, memory_till.world
    with pytest.raises(InsufficientBalance):
        till.settle(till.quote("100.01"))
    quote = till.quote()
    world.pause_policy()
    with pytest.raises(PolicyInactive):
        till.settle(quote)
    world.pause_policy("active")
    till.service.acting_as(world.server).accounts.change(world.payer.id, status="suspended")
    with pytest.raises(AccountSuspended):
        till.settle(quote)
    till.service.acting_as(world.server).accounts.change(world.payer.id, status="active")
    till.service.acting_as(world.server).payments.cancel(quote.payment_id)
    with pytest.raises(InvalidState):
        till.settle(quote)
    late = till.quote()
    world.advance(15 * 60 + 1)
    with pytest.raises(PaymentExpired):
        till.settle(late)
    assert (till.settled(), world.held()[1]) == ([], 0)


def test_a_quote_that_was_paid_otherwise_is_not_paid_again(memory_till: Till) -> None:
    """From a wallet, or from the vault by v2: one of them takes the quote."""
    till, world = memory_till, memory_till.world
    quote = till.quote()
    world.pay(till.service.acting_as(world.server).payments.read(quote.payment_id), "25.00")
    world.finish()
    with pytest.raises(InvalidState):
        till.settle(quote)
    by_v2 = till.quote()
    details = till.service.acting_as(world.server).payments.read(by_v2.payment_id)
    world.authorize(world.option(details))
    with pytest.raises(OptionLocked):
        till.settle(by_v2)
    world.finish()
    assert world.held()[0] == 75_000_000


def test_an_option_of_v2_that_was_not_authorized_gives_way(memory_till: Till) -> None:
    till, world = memory_till, memory_till.world
    quote = till.quote()
    offered = world.option(till.service.acting_as(world.server).payments.read(quote.payment_id))
    till.settle(quote)
    assert world.option_now(offered).selection_status == "superseded"
    with pytest.raises(PaymentsError):
        world.authorize(offered)
    world.finish()
    assert till.payment(quote).status == "succeeded"
    assert world.held()[0] == 75_000_000


def test_the_rest_of_a_short_quote_is_settled(memory_till: Till) -> None:
    till, world = memory_till, memory_till.world
    quote = till.quote()
    world.pay(till.service.acting_as(world.server).payments.read(quote.payment_id), "10.00")
    world.finish()
    assert till.settle(quote).amount == 15_000_000
    world.finish()
    assert (till.payment(quote).status, world.held()[0]) == ("succeeded", 85_000_000)


def test_a_wallet_that_pays_while_the_vault_does_is_paid_back(memory_till: Till) -> None:
    """Both transfers are under way at once: the second is excess, and goes back to its sender."""
    till, world = memory_till, memory_till.world
    quote = till.quote()
    details = till.service.acting_as(world.server).payments.read(quote.payment_id)
    till.settle(quote)
    world.pay(details, "25.00")
    world.finish()
    payment = till.payment(quote)
    assert payment.status == "succeeded"
    assert (payment.received, payment.excess) == (50_000_000, 25_000_000)
    world.reconcile(details, "refund_excess")
    world.finish()
    assert till.payment(quote).excess == 0
    assert world.held()[0] + world.on_chain(WALLET) == 100_000_000
    assert world.held(world.merchant)[0] == 25_000_000


def test_a_chain_without_the_payers_vault(memory_till: Till) -> None:
    till = memory_till
    quote = till.quote()
    for vault in (
        till.service.acting_as(till.world.server).accounts.read(till.world.payer.id).vaults
    ):
        if vault.chain_id == BASE:
            write(till.world.storage, till.world.environment_id, lambda tx, v=vault: tx.delete(v))
    with pytest.raises(UnsupportedChain):
        till.settle(quote)
