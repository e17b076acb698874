"""Settlements: a signature pays a quote from its payer's vault, once."""

from __future__ import annotations

from typing import Any

import pytest

from payments_core.accounts.new_wallets import NewWallet
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
from tests.service.legacy.settlements.settlement_harness import (
    NO_QUOTE,
    POLYGON,
    SIGNER,
    STRANGER,
    SettlementHarness,
)
from tests.service.world import BASE, WALLET, World, once, write


def test_a_signature_pays_the_quote_from_the_vault(harness: SettlementHarness) -> None:
    quote = harness.quote()
    operation = harness.settle(quote)
    assert (operation.status, operation.amount_atomic) == ("authorized", 25_000_000)
    assert harness.world.held() == (100_000_000, 25_000_000, 75_000_000)
    payment = harness.payment(quote)
    assert (payment.status, payment.authorized) == ("processing", (operation.id,))
    [settled] = harness.settled()
    assert (settled.signer, settled.operation_id) == (SIGNER.address, operation.id)
    harness.world.finish()
    assert harness.payment(quote).status == "succeeded"
    assert harness.service.acting_as(harness.world.server).legacy.read_quote(quote.id).is_done
    assert harness.world.held() == (75_000_000, 0, 75_000_000)
    assert harness.world.held(harness.world.merchant)[0] == 25_000_000


def test_the_events_are_those_of_a_payment_that_a_vault_funds(
    memory_harness: SettlementHarness,
) -> None:
    harness, world = memory_harness, memory_harness.world
    quote = harness.quote()
    harness.settle(quote)
    world.finish()
    names = world.event_names(quote.payment_id)
    option = world.authorized()
    world.finish()
    assert names == world.event_names(option.payment.id)


def test_a_transfer_that_fails_gives_the_funds_back_and_the_quote_stays_used(
    memory_harness: SettlementHarness,
) -> None:
    """The quote can be paid otherwise: by a transfer, or by v2."""
    harness, world = memory_harness, memory_harness.world
    quote = harness.quote()
    world.fail("transfer")
    harness.settle(quote)
    world.advance(60)
    assert harness.payment(quote).status == "awaiting_payment"
    assert world.held() == (100_000_000, 0, 100_000_000)
    with pytest.raises(ActionAlreadyUsed):
        harness.settle(quote, nonce=2)
    world.authorize(
        world.option(harness.service.acting_as(world.server).payments.read(quote.payment_id))
    )
    world.finish()
    assert (harness.payment(quote).status, world.held()[0]) == ("succeeded", 75_000_000)


def test_a_quote_across_chains_is_settled_on_its_source(memory_harness: SettlementHarness) -> None:
    quote = memory_harness.quote(destination_chain_id=POLYGON)
    memory_harness.settle(quote)
    memory_harness.world.finish()
    assert (
        memory_harness.service.acting_as(memory_harness.world.server)
        .legacy.read_quote(quote.id)
        .is_done
    )


def test_it_is_a_transaction_of_the_payer_of_its_own_type(harness: SettlementHarness) -> None:
    world = harness.world
    operation = harness.settle(harness.quote())
    other = world.authorized()
    world.finish()
    transactions = harness.service.acting_as(world.server).legacy
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


def test_quote_and_nonce_work_once(harness: SettlementHarness) -> None:
    quote, other = harness.quote(), harness.quote()
    body = harness.body(quote, nonce=7)
    harness.send(body)
    for again in (body, harness.body(quote, nonce=8)):
        with pytest.raises(ActionAlreadyUsed, match="quote"):
            harness.send(again)
    with pytest.raises(ActionAlreadyUsed, match="nonce"):
        harness.settle(other, nonce=7)
    assert harness.payment(other).status == "awaiting_payment"
    harness.world.finish()
    with pytest.raises(ActionAlreadyUsed):
        harness.send(body)
    harness.settle(other, nonce=8)
    harness.world.finish()
    assert harness.world.held() == (50_000_000, 0, 50_000_000)
    assert len(harness.settled()) == 2


def test_a_nonce_has_256_bits(memory_harness: SettlementHarness) -> None:
    harness, most = memory_harness, 2**256 - 1
    body = harness.body(harness.quote(), nonce=most)
    body["payload"]["nonce"] = str(most)
    harness.send(body)
    assert harness.settled()[0].nonce == str(most)
    larger = harness.body(harness.quote())
    larger["payload"]["nonce"] = str(most + 1)
    assert harness.faults_of(larger) == ["payload.nonce"]


def test_a_key_is_answered_again(memory_harness: SettlementHarness) -> None:
    harness = memory_harness
    body = harness.body(harness.quote())
    harness.send(body, idempotency_key=once("one"))
    with pytest.raises(AlreadyResponded):
        harness.send(body, idempotency_key=once("one"))
    assert harness.world.held()[1] == 25_000_000


# Whose quote, and in which state.


def test_somebody_elses_quote_is_not_settled(memory_harness: SettlementHarness) -> None:
    """Who knows a quote's id pays it neither from the payer's vault nor from another's."""
    harness, world = memory_harness, memory_harness.world
    harness.link(STRANGER, world.merchant)
    quote = harness.quote()
    merchants = world.vault_address(world.merchant)
    assert harness.faults_of(harness.body(quote, STRANGER)) == ["signature"]
    paths = harness.faults_of(harness.body(quote, STRANGER, vault=merchants))
    assert paths == ["domain.verifying_contract"]
    body = harness.body(quote)
    body["payload"]["quoteId"] = NO_QUOTE
    with pytest.raises(NotFound):
        harness.send(body)


def test_a_quote_that_names_no_account_has_no_vault(memory_harness: SettlementHarness) -> None:
    with pytest.raises(CapabilityNotActive):
        memory_harness.settle(memory_harness.quote(source_address=SIGNER.address))


def test_a_wallet_that_is_not_proven_signs_nothing(memory_world: World) -> None:
    harness, world = SettlementHarness(memory_world, funds=""), memory_world
    world.payer = world.account(
        "other", wallets=(NewWallet(address=STRANGER.address, chain_type="evm"),)
    )
    world.fund("50.00")
    world.advance(5)
    quote = harness.quote()
    assert harness.faults_of(harness.body(quote, STRANGER)) == ["signature"]
    harness.link(STRANGER)
    harness.settle(quote, STRANGER)


def test_a_wallet_that_is_unlinked_meanwhile_signs_nothing(
    memory_harness: SettlementHarness,
) -> None:
    harness, world = memory_harness, memory_harness.world
    quote = harness.quote()
    [wallet] = harness.service.acting_as(world.server).wallets.list(world.payer.id).records

    def unlink(call: Any) -> Any:
        harness.service.acting_as(world.server).wallets.remove(world.payer.id, wallet.id)
        return call()

    storage = FaultyStorage(world.storage, 1, unlink, ("transact",))
    with pytest.raises(ValidationFailed):
        harness.settle(quote, service=world.restarted(storage))
    assert (harness.settled(), world.held()[1]) == ([], 0)


def test_what_v2_refuses_is_refused(memory_harness: SettlementHarness) -> None:
    harness, world = memory_harness, memory_harness.world
    with pytest.raises(InsufficientBalance):
        harness.settle(harness.quote("100.01"))
    quote = harness.quote()
    world.pause_policy()
    with pytest.raises(PolicyInactive):
        harness.settle(quote)
    world.pause_policy("active")
    harness.service.acting_as(world.server).accounts.change(world.payer.id, status="suspended")
    with pytest.raises(AccountSuspended):
        harness.settle(quote)
    harness.service.acting_as(world.server).accounts.change(world.payer.id, status="active")
    harness.service.acting_as(world.server).payments.cancel(quote.payment_id)
    with pytest.raises(InvalidState):
        harness.settle(quote)
    late = harness.quote()
    world.advance(15 * 60 + 1)
    with pytest.raises(PaymentExpired):
        harness.settle(late)
    assert (harness.settled(), world.held()[1]) == ([], 0)


def test_a_quote_that_was_paid_otherwise_is_not_paid_again(
    memory_harness: SettlementHarness,
) -> None:
    """From a wallet, or from the vault by v2: one of them takes the quote."""
    harness, world = memory_harness, memory_harness.world
    quote = harness.quote()
    world.pay(harness.service.acting_as(world.server).payments.read(quote.payment_id), "25.00")
    world.finish()
    with pytest.raises(InvalidState):
        harness.settle(quote)
    by_v2 = harness.quote()
    details = harness.service.acting_as(world.server).payments.read(by_v2.payment_id)
    world.authorize(world.option(details))
    with pytest.raises(OptionLocked):
        harness.settle(by_v2)
    world.finish()
    assert world.held()[0] == 75_000_000


def test_an_option_of_v2_that_was_not_authorized_gives_way(
    memory_harness: SettlementHarness,
) -> None:
    harness, world = memory_harness, memory_harness.world
    quote = harness.quote()
    offered = world.option(harness.service.acting_as(world.server).payments.read(quote.payment_id))
    harness.settle(quote)
    assert world.option_now(offered).selection_status == "superseded"
    with pytest.raises(PaymentsError):
        world.authorize(offered)
    world.finish()
    assert harness.payment(quote).status == "succeeded"
    assert world.held()[0] == 75_000_000


def test_the_rest_of_a_short_quote_is_settled(memory_harness: SettlementHarness) -> None:
    harness, world = memory_harness, memory_harness.world
    quote = harness.quote()
    world.pay(harness.service.acting_as(world.server).payments.read(quote.payment_id), "10.00")
    world.finish()
    assert harness.settle(quote).amount_atomic == 15_000_000
    world.finish()
    assert (harness.payment(quote).status, world.held()[0]) == ("succeeded", 85_000_000)


def test_a_wallet_that_pays_while_the_vault_does_is_paid_back(
    memory_harness: SettlementHarness,
) -> None:
    """Both transfers are under way at once: the second is excess, and goes back to its sender."""
    harness, world = memory_harness, memory_harness.world
    quote = harness.quote()
    details = harness.service.acting_as(world.server).payments.read(quote.payment_id)
    harness.settle(quote)
    world.pay(details, "25.00")
    world.finish()
    payment = harness.payment(quote)
    assert payment.status == "succeeded"
    assert (payment.received_atomic, payment.excess_atomic) == (50_000_000, 25_000_000)
    world.reconcile(details, "refund_excess")
    world.finish()
    assert harness.payment(quote).excess_atomic == 0
    assert world.held()[0] + world.on_chain(WALLET) == 100_000_000
    assert world.held(world.merchant)[0] == 25_000_000


def test_a_chain_without_the_payers_vault(memory_harness: SettlementHarness) -> None:
    harness = memory_harness
    quote = harness.quote()
    for vault in (
        harness.service.acting_as(harness.world.server).accounts.read(harness.world.payer.id).vaults
    ):
        if vault.chain_id == BASE:
            write(
                harness.world.storage,
                harness.world.environment_id,
                lambda tx, v=vault: tx.delete(v),
            )
    with pytest.raises(UnsupportedChain):
        harness.settle(quote)
