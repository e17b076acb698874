"""Settlements: a signature pays a quote from its payer's vault, once."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from typing import Any

import attrs
import pytest

from payments_core.accounts.erc1271 import MAX_CHECK_MS
from payments_core.accounts.operations import NewWallet
from payments_core.accounts.record import Wallet
from payments_core.accounts.vaults.record import VaultBalance
from payments_core.chains.port import Chain, ChainUnavailable, UnsupportedByChain
from payments_core.chains.signatures import ORDER
from payments_core.engine.idempotency.record import AlreadyResponded
from payments_core.errors import (
    AccountSuspended,
    ActionAlreadyUsed,
    ActionExpired,
    CapabilityNotActive,
    DependencyFailed,
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
from payments_core.service import PaymentsService
from payments_core.storage.memory.adapter import MemoryStorage, Weakness
from payments_core.storage.port import Storage, StorageUnavailable
from tests.quote_payer import sign_settlement
from tests.service.faults import (
    EVERY_CALL,
    Crashed,
    Fault,
    FaultyChain,
    FaultyStorage,
    chain_away,
    commit_failed,
    commit_lost,
    crash,
    storage_away,
)
from tests.service.legacy.till import SIGNER, Till
from tests.service.world import BASE, WALLET, World, once, write
from tests.signers import EvmWallet

STRANGER = EvmWallet(42)
POLYGON = 137
NO_QUOTE = "quote_AAAAAAAAAAAAAAAAAAAAAAAA"
SIDE_BY_SIDE = Weakness(
    stale_get=0, stale_find=0, short_page=0, rerun=0, lost_commit=0, short_claim=0, clock_ahead=0
)
"""A memory whose works run side by side, as those of a server do, and which is sound."""


@pytest.fixture
def till(world: World) -> Till:
    return Till(world, funds="")


@pytest.fixture
def memory_till(memory_world: World) -> Till:
    return Till(memory_world, funds="")


def faults_of(till: Till, body: Any) -> list[str]:
    with pytest.raises(ValidationFailed) as refused:
        till.send(body)
    return [fault.path for fault in refused.value.fields]


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
    assert till.service.quotes.get(till.world.server, quote.id).is_done
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
    world.authorize(world.option(till.service.payments.get(world.server, quote.payment_id)))
    world.finish()
    assert (till.payment(quote).status, world.held()[0]) == ("succeeded", 75_000_000)


def test_a_quote_across_chains_is_settled_on_its_source(memory_till: Till) -> None:
    quote = memory_till.quote(destination_chain_id=POLYGON)
    memory_till.settle(quote)
    memory_till.world.finish()
    assert memory_till.service.quotes.get(memory_till.world.server, quote.id).is_done


def test_it_is_a_transaction_of_the_payer_of_its_own_type(till: Till) -> None:
    world = till.world
    operation = till.settle(till.quote())
    other = world.authorized()
    world.finish()
    transactions = till.service.legacy_transactions
    found = {
        type: [
            (one.id, one.type, one.status)
            for one in transactions.list(
                world.server, world.payer.id, Filters(type=type)
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
    read = transactions.get(world.server, settled[0])
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
    assert faults_of(till, larger) == ["payload.nonce"]


def test_a_key_is_answered_again(memory_till: Till) -> None:
    till = memory_till
    body = till.body(till.quote())
    till.send(body, idempotency_key=once("one"))
    with pytest.raises(AlreadyResponded):
        till.send(body, idempotency_key=once("one"))
    assert till.world.held()[1] == 25_000_000


# What is signed, and what is not.


def test_what_the_payer_did_not_sign_is_refused(memory_till: Till) -> None:
    till, world = memory_till, memory_till.world
    quote, other = till.quote(), till.quote()
    till.link(STRANGER, world.merchant)
    good = till.body(quote)["signature"]
    raw = bytes.fromhex(good[2:])
    high = ORDER - int.from_bytes(raw[32:64], "big")
    vault, deadline = world.vault_address(), till.deadline
    signatures = {
        "one changed byte of r": "0x" + (bytes([raw[0] ^ 1]) + raw[1:]).hex(),
        "one changed byte of s": "0x" + (raw[:63] + bytes([raw[63] ^ 1]) + raw[64:]).hex(),
        "the other recovery byte": "0x" + (raw[:64] + bytes([55 - raw[64]])).hex(),
        "high s": "0x" + (raw[:32] + high.to_bytes(32, "big") + bytes([55 - raw[64]])).hex(),
        "another account's wallet": sign_settlement(STRANGER, vault, quote.id, deadline),
        "another chain": sign_settlement(SIGNER, vault, quote.id, deadline, chain_id=POLYGON),
        "another vault": sign_settlement(
            SIGNER, world.vault_address(world.merchant), quote.id, deadline
        ),
        "another name": sign_settlement(SIGNER, vault, quote.id, deadline, name="Money"),
        "another version": sign_settlement(SIGNER, vault, quote.id, deadline, version="2"),
        "another quote": sign_settlement(SIGNER, vault, other.id, deadline),
        "another nonce": sign_settlement(SIGNER, vault, quote.id, deadline, nonce=2),
        "another deadline": sign_settlement(SIGNER, vault, quote.id, deadline + 1),
        "a message": SIGNER.sign(quote.id),
        "nothing": "0x",
        "words": "words",
        "too short": good[:-2],
        "too long": good + "00",
    }
    for what, signature in signatures.items():
        assert faults_of(till, {**till.body(quote), "signature": signature}) == ["signature"], what
    assert (till.payment(quote).status, till.settled()) == ("awaiting_payment", [])
    assert world.held()[1] == 0
    till.settle(quote)


CHANGES: tuple[tuple[str, tuple[str, ...], Any], ...] = (
    ("domain.name", ("domain", "name"), "Money"),
    ("domain.version", ("domain", "version"), "2"),
    ("domain.chainId", ("domain", "chainId"), POLYGON),
    ("domain.chainId", ("domain", "chainId"), "08453"),
    ("domain.verifyingContract", ("domain", "verifyingContract"), WALLET),
    ("domain.verifyingContract", ("domain", "verifyingContract"), "nowhere"),
    ("types.Settlement", ("types", "Settlement"), []),
    ("types.Settlement", ("types", "Settlement", "1", "type"), "uint128"),
    ("types.Settlement", ("types", "Settlement", "0", "name"), "quote"),
    ("types.EIP712Domain", ("types", "EIP712Domain"), []),
    ("signature", ("payload", "nonce"), 2),
    ("signature", ("payload", "deadline"), 4_000_000_000),
    ("payload.nonce", ("payload", "nonce"), -1),
    ("payload.nonce", ("payload", "nonce"), "0x1"),
    ("payload.deadline", ("payload", "deadline"), "9" * 78),
)


@pytest.mark.parametrize(("path", "place", "value"), CHANGES)
def test_domain_types_and_message_are_compared(
    memory_till: Till, path: str, place: tuple[str, ...], value: Any
) -> None:
    body = deepcopy(memory_till.body(memory_till.quote()))
    inner: Any = body
    for name in place[:-1]:
        inner = inner[int(name) if name.isdigit() else name]
    inner[place[-1]] = value
    assert faults_of(memory_till, body) == [path]
    assert memory_till.settled() == []


def test_what_is_wrong_for_every_quote_is_refused_before_one_is_looked_for(
    memory_till: Till,
) -> None:
    till = memory_till
    body = deepcopy(till.body(till.quote()))
    body["payload"] = {"quoteId": NO_QUOTE, "nonce": str(2**256), "deadline": "0"}
    body["domain"] = {**body["domain"], "name": "Money", "version": "2", "chainId": POLYGON}
    body["types"]["Settlement"] = []
    wrong = ["payload.nonce", "domain.name", "domain.version", "types.Settlement"]
    assert faults_of(till, body) == wrong


def test_what_libraries_add_and_how_they_write_is_accepted(memory_till: Till) -> None:
    till = memory_till
    body = deepcopy(till.body(till.quote()))
    body["types"]["EIP712Domain"] = [
        {"name": name, "type": type}
        for name, type in (
            ("name", "string"), ("version", "string"), ("chainId", "uint256"),
            ("verifyingContract", "address"),
        )
    ]  # fmt: skip
    body["domain"]["verifyingContract"] = body["domain"]["verifyingContract"].lower()
    body["domain"]["chainId"] = str(body["domain"]["chainId"])
    body["payload"]["nonce"] = str(body["payload"]["nonce"])
    body["signature"] = body["signature"][2:].upper()
    till.send(body)
    assert len(till.settled()) == 1


def test_a_deadline_in_the_past_is_refused(memory_till: Till) -> None:
    till, quote = memory_till, memory_till.quote()
    for deadline in (0, till.world.clock.now() // 1_000 - 1, till.world.clock.now() // 1_000):
        with pytest.raises(ActionExpired):
            till.settle(quote, deadline=deadline)
    body = till.body(quote)
    till.world.advance(601)
    with pytest.raises(ActionExpired):
        till.send(body)
    till.settle(quote)


# Whose quote, and in which state.


def test_somebody_elses_quote_is_not_settled(memory_till: Till) -> None:
    """Who knows a quote's id pays it neither from the payer's vault nor from another's."""
    till, world = memory_till, memory_till.world
    till.link(STRANGER, world.merchant)
    quote = till.quote()
    merchants = world.vault_address(world.merchant)
    assert faults_of(till, till.body(quote, STRANGER)) == ["signature"]
    paths = faults_of(till, till.body(quote, STRANGER, vault=merchants))
    assert paths == ["domain.verifyingContract"]
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
    assert faults_of(till, till.body(quote, STRANGER)) == ["signature"]
    till.link(STRANGER)
    till.settle(quote, STRANGER)


def test_a_wallet_that_is_unlinked_meanwhile_signs_nothing(memory_till: Till) -> None:
    till, world = memory_till, memory_till.world
    quote = till.quote()
    [wallet] = till.service.wallets.list(world.server, world.payer.id).records

    def unlink(call: Any) -> Any:
        till.service.wallets.remove(world.server, world.payer.id, wallet.id)
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
    till.service.accounts.update(world.server, world.payer.id, status="suspended")
    with pytest.raises(AccountSuspended):
        till.settle(quote)
    till.service.accounts.update(world.server, world.payer.id, status="active")
    till.service.payments.cancel(world.server, quote.payment_id)
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
    world.pay(till.service.payments.get(world.server, quote.payment_id), "25.00")
    world.finish()
    with pytest.raises(InvalidState):
        till.settle(quote)
    by_v2 = till.quote()
    details = till.service.payments.get(world.server, by_v2.payment_id)
    world.authorize(world.option(details))
    with pytest.raises(OptionLocked):
        till.settle(by_v2)
    world.finish()
    assert world.held()[0] == 75_000_000


def test_an_option_of_v2_that_was_not_authorized_gives_way(memory_till: Till) -> None:
    till, world = memory_till, memory_till.world
    quote = till.quote()
    offered = world.option(till.service.payments.get(world.server, quote.payment_id))
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
    world.pay(till.service.payments.get(world.server, quote.payment_id), "10.00")
    world.finish()
    assert till.settle(quote).amount == 15_000_000
    world.finish()
    assert (till.payment(quote).status, world.held()[0]) == ("succeeded", 85_000_000)


def test_a_wallet_that_pays_while_the_vault_does_is_paid_back(memory_till: Till) -> None:
    """Both transfers are under way at once: the second is excess, and goes back to its sender."""
    till, world = memory_till, memory_till.world
    quote = till.quote()
    details = till.service.payments.get(world.server, quote.payment_id)
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
    for vault in till.service.accounts.get(till.world.server, till.world.payer.id).vaults:
        if vault.chain_id == BASE:
            write(till.world.storage, till.world.environment_id, lambda tx, v=vault: tx.delete(v))
    with pytest.raises(UnsupportedChain):
        till.settle(quote)


# Contract wallets.


class Node(FaultyChain):
    """A chain on which the signer's address has code that takes one signature, or none."""

    def __init__(self, inner: Chain, accepts: bool | Exception | None) -> None:
        super().__init__(inner, at=0, fault=lambda call: call(), until=-1)
        self.accepts = accepts

    def check_contract_signature(
        self, address: str, digest: bytes, signature: bytes
    ) -> bool | None:
        if isinstance(self.accepts, Exception):
            raise self.accepts
        return self.accepts if address == SIGNER.address and signature == b"\1\2" else None


@pytest.mark.parametrize(
    ("here", "elsewhere", "error"),
    [
        (True, None, None),
        (True, True, None),
        (True, False, None),  # what another chain's contract refuses is its own affair
        (True, ChainUnavailable("down"), None),
        (False, True, ValidationFailed),
        (None, True, ValidationFailed),
        (False, None, ValidationFailed),
        (ChainUnavailable("down"), None, DependencyFailed),
        (UnsupportedByChain("no contracts"), None, ValidationFailed),
    ],
)
def test_a_contract_wallet_signs_on_the_chain_of_the_quote(
    memory_till: Till, here: Any, elsewhere: Any, error: type[Exception] | None
) -> None:
    till = memory_till
    nodes = {
        id: Node(chain, here if id == BASE else elsewhere)
        for id, chain in till.service.chains.items()
    }
    quote = till.quote()
    body = {**till.body(quote), "signature": "0x0102"}
    service = till.world.restarted(chains=nodes)
    with contextlib.nullcontext() if error is None else pytest.raises(error):
        till.send(body, service)
    assert len(till.settled()) == (error is None)


CONTRACT = "0xd8BC79b53BD5BE614dCD5Ee8e12A05f44eDFAd2B"


class Yes(Node):
    """A chain whose contract at that address accepts anything."""

    def check_contract_signature(self, address: str, *_: bytes) -> bool | None:
        return address == CONTRACT or None


def link_contract(till: Till, account: Any, *chain_ids: int) -> PaymentsService:
    """The account links that contract on these chains; a service over chains that all have it."""
    everywhere = {id: Yes(chain, None) for id, chain in till.service.chains.items()}
    service = till.world.restarted(chains=everywhere)
    for chain_id in chain_ids:
        asked = service.wallets.challenge(
            till.world.server, account.id, CONTRACT, "evm", chain_id=chain_id
        )
        service.wallets.add(till.world.server, account.id, asked.id, "0x0102")
    return service


@pytest.mark.parametrize(
    ("chain_ids", "error"),
    [
        ((BASE,), None),
        ((BASE, POLYGON), None),
        ((POLYGON,), ValidationFailed),  # on the quote's chain it may be a stranger's
        ((), ValidationFailed),
    ],
)
def test_a_contract_wallet_signs_only_on_a_chain_that_it_is_verified_on(
    memory_till: Till, chain_ids: tuple[int, ...], error: type[Exception] | None
) -> None:
    till = memory_till
    service = link_contract(till, till.world.payer, *chain_ids)
    link_contract(till, till.world.merchant, 1)  # another account's, on another chain
    body = {**till.body(till.quote()), "signature": "0x0102"}
    with contextlib.nullcontext() if error is None else pytest.raises(error):
        till.send(body, service)
    assert len(till.settled()) == (error is None)


def proven_otherwise(till: Till, **proof: Any) -> Wallet:
    """The payer's wallet, with another proof than its key's."""
    world = till.world
    [linked] = world.service.accounts.get(world.server, world.payer.id).wallets
    changed = attrs.evolve(linked, key_proof=False, **proof)
    write(world.storage, world.environment_id, lambda tx: tx.replace(changed))
    return changed


def as_an_earlier_release_has_it(till: Till) -> Wallet:
    """The payer's wallet, of which no record says whether its key or a contract proved it."""
    return proven_otherwise(till)


@pytest.mark.parametrize(("chain_id", "error"), [(BASE, None), (POLYGON, ValidationFailed)])
def test_the_key_at_a_contracts_address_signs_where_the_contract_has_proven_it(
    memory_till: Till, chain_id: int, error: type[Exception] | None
) -> None:
    """Others may control that contract (EIP-7702): its proof gives the key nothing elsewhere."""
    till = memory_till
    proven_otherwise(till, contract_chains=(chain_id,))
    with contextlib.nullcontext() if error is None else pytest.raises(error):
        till.settle(till.quote())
    assert len(till.settled()) == (error is None)


def test_a_contract_speaks_for_an_earlier_releases_wallet_once_it_is_linked_again(
    memory_till: Till,
) -> None:
    till, world = memory_till, memory_till.world
    assert as_an_earlier_release_has_it(till).is_verified_everywhere
    service = world.restarted(chains={BASE: Node(till.service.chains[BASE], True)})
    body = {**till.body(till.quote()), "signature": "0x0102"}
    with pytest.raises(ValidationFailed):
        till.send(body, service)
    asked = service.wallets.challenge(world.server, world.payer.id, SIGNER.address, "evm")
    service.wallets.add(world.server, world.payer.id, asked.id, "0x0102")
    till.send(body, service)
    assert len(till.settled()) == 1


def test_the_key_of_an_earlier_releases_wallet_signs(memory_till: Till) -> None:
    till = memory_till
    as_an_earlier_release_has_it(till)
    till.settle(till.quote())
    assert len(till.settled()) == 1


def test_wallets_are_asked_for_so_long_and_no_longer(memory_till: Till) -> None:
    """A caller who knows a quote's id may bring any signature."""
    till, asked = memory_till, []

    class SlowNode(Node):
        def check_contract_signature(self, address: str, *_: bytes) -> bool | None:
            asked.append(address)
            till.world.system.advance(MAX_CHECK_MS / 4_000)
            return None

    for number in range(50, 56):
        till.link(EvmWallet(number))
    service = till.world.restarted(chains={BASE: SlowNode(till.world.chain, None)})
    with pytest.raises(DependencyFailed):
        till.send({**till.body(till.quote()), "signature": "0x0102"}, service)
    assert len(asked) == 4


def test_a_chain_that_is_no_longer_served_settles_nothing(memory_till: Till) -> None:
    till = memory_till
    quote = till.quote()
    service = till.world.restarted(chains={POLYGON: till.service.chains[POLYGON]})
    for signature in (till.body(quote)["signature"], "0x0102"):
        with pytest.raises(DependencyFailed):
            till.send({**till.body(quote), "signature": signature}, service)
    assert till.settled() == []


# Races, crashes and lost answers.


class Overtaken(FaultyStorage):
    """A storage on which another process works after a transaction has looked for a balance."""

    def __init__(self, inner: Storage, meanwhile: Callable[[], object]) -> None:
        super().__init__(inner, 0, lambda call: call())
        self.pending = [meanwhile]

    def transact(self, partition: str, work: Callable[[Any], Any]) -> Any:
        def work_overtaken(tx: Any) -> Any:
            get = tx.get

            def get_overtaken(kind: Any, id: str, **more: Any) -> Any:
                found = get(kind, id, **more)
                if kind is VaultBalance and self.pending:
                    with ThreadPoolExecutor(1) as other:
                        other.submit(self.pending.pop()).result()
                return found

            tx.get = get_overtaken
            return work(tx)

        return super().transact(partition, work_overtaken)


@pytest.mark.parametrize("by_v2", [False, True])
def test_of_the_first_two_transfers_of_a_vault_at_one_moment_none_is_refused(by_v2: bool) -> None:
    """The vault has no row of a balance yet that one of them could lock."""
    till = Till(World(MemoryStorage(SIDE_BY_SIDE)).open())
    other = till.world.option(till.world.payment("25.00")) if by_v2 else till.quote()
    quote = till.quote()

    def meanwhile() -> object:
        return till.world.authorize(other) if by_v2 else till.settle(other, nonce=2)

    storage = Overtaken(till.world.storage, meanwhile)
    till.settle(quote, service=till.world.restarted(storage))
    assert storage.pending == []
    assert till.world.held()[1] == 50_000_000
    assert quote.id in [one.id for one in till.settled()]


@pytest.mark.parametrize("same_nonce", [False, True])
def test_of_two_settles_at_one_moment_one_takes_place(till: Till, same_nonce: bool) -> None:
    """Of one quote with two nonces, and of two quotes with one nonce."""
    quote = till.quote()
    quotes = (quote, till.quote()) if same_nonce else (quote, quote)
    nonces = (1, 1) if same_nonce else (1, 2)
    bodies = [till.body(one, nonce=nonce) for one, nonce in zip(quotes, nonces, strict=True)] * 2

    def send(body: Any) -> str:
        try:
            till.send(body, till.world.restarted())
        except (ActionAlreadyUsed, OptionLocked) as error:
            return type(error).__name__
        return "settled"

    with ThreadPoolExecutor(4) as pool:
        answers = Counter(pool.map(send, bodies))
    assert answers["settled"] == 1
    assert till.world.held()[1] == 25_000_000
    till.world.finish()
    assert till.world.held() == (75_000_000, 0, 75_000_000)
    assert len(till.settled()) == 1


def test_a_settle_and_an_authorization_at_one_moment_spend_once(till: Till) -> None:
    quote, world = till.quote(), till.world
    offered = world.option(till.service.payments.get(world.server, quote.payment_id))
    body = till.body(quote)

    def attempt(work: Any) -> bool:
        try:
            work()
        except PaymentsError:
            return False
        return True

    with ThreadPoolExecutor(2) as pool:
        done = list(pool.map(attempt, [lambda: till.send(body), lambda: world.authorize(offered)]))
    assert sum(done) == 1
    world.finish()
    assert (till.payment(quote).status, world.held()[0]) == ("succeeded", 75_000_000)


@pytest.mark.parametrize(
    ("fault", "calls"),
    [
        (crash, EVERY_CALL),
        (storage_away, EVERY_CALL),
        (commit_lost, ("transact",)),
        (commit_failed, ("transact",)),
    ],
)
def test_a_process_that_dies_in_a_settle_leaves_all_or_nothing(
    fault: Fault, calls: tuple[str, ...]
) -> None:
    """Asked again by another process it takes place, or is found to have taken place; once."""
    for at in range(1, 40):
        till = Till(World(MemoryStorage()).open())
        quote = till.quote()
        body = till.body(quote)
        storage = FaultyStorage(till.world.storage, at, fault, calls)
        with contextlib.suppress(Crashed, PaymentsError, StorageUnavailable):
            till.send(body, till.world.restarted(storage))
        assert till.world.held()[1] == 25_000_000 * len(till.settled())
        with contextlib.suppress(ActionAlreadyUsed):
            till.send(body)
        check_story(till, quote.payment_id)
        if not storage.had_its_fault:
            assert at > 1
            return
    raise AssertionError("the flow never ended")


def test_a_worker_may_die_before_any_call_it_makes_for_a_settlement() -> None:
    for at in range(1, 400, 4):
        till = Till(World(MemoryStorage()).open())
        quote = till.quote()
        till.settle(quote)
        world = till.world
        storage = FaultyStorage(world.storage, at, crash, ("transact", "claim"))
        dying = world.restarted(storage)
        with contextlib.suppress(Crashed):
            dying.worker("sandbox").run_through(world.clock.now() + 9_000, world.clock.advance_to)
        world.advance(110)
        check_story(till, quote.payment_id)
        if not storage.had_its_fault:
            assert at > 10
            return
    raise AssertionError("the flow never ended")


def test_a_chain_that_does_not_answer_settles_nothing(memory_till: Till) -> None:
    till = memory_till
    body = till.body(till.quote())
    chain = FaultyChain(till.world.chain, 1, chain_away)
    with pytest.raises(DependencyFailed):
        till.send(body, till.world.restarted(chains={BASE: chain}))
    assert (till.settled(), till.world.held()[1]) == ([], 0)
    till.send(body)


def check_story(till: Till, payment_id: str) -> None:
    """The quote is paid, once."""
    till.world.finish()
    assert till.world.paid(payment_id).status == "succeeded"
    assert till.world.held() == (75_000_000, 0, 75_000_000)
    assert till.world.held(till.world.merchant)[0] == 25_000_000
    assert len(till.settled()) == 1
    assert till.world.sent() == 2
