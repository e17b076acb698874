"""Contract wallets (ERC-1271): linked by a contract's word, which counts on its own chain alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import permutations
from typing import Any

import attrs
import pytest

from payments_core.accounts.erc1271 import MAX_CHECK_MS
from payments_core.accounts.record import Account, Wallet, WalletChallenge
from payments_core.accounts.wallet_signatures import personal_digest
from payments_core.chains.port import Chain, ChainUnavailable, UnsupportedByChain
from payments_core.chains.signatures import (
    MAX_CONTRACT_SIGNATURE_BYTES,
    SignatureError,
    recover_signer,
)
from payments_core.engine.idempotency.record import AlreadyResponded
from payments_core.errors import (
    AccountSuspended,
    ActionAlreadyUsed,
    ActionExpired,
    DependencyFailed,
    NotFound,
    ResourceConflict,
    UnsupportedChain,
    ValidationFailed,
)
from payments_core.networks import Asset, Network, shipped_networks
from payments_core.service import PaymentsService
from payments_core.storage.memory.adapter import MemoryStorage
from tests.service.conftest import funded
from tests.service.faults import FaultyChain
from tests.service.world import World, once
from tests.shipped import CHAINS
from tests.signers import AptosWallet, EvmWallet, SolanaWallet

ADDRESS = "0xd8BC79b53BD5BE614dCD5Ee8e12A05f44eDFAd2B"
OWNERS = (EvmWallet(21), EvmWallet(22))
REGISTRY = tuple(CHAINS)

Word = Callable[[bytes, bytes], bool]


def both_owners(digest: bytes, signature: bytes) -> bool:
    """A contract that takes the signatures of its two owners, one after the other."""
    parts = [signature[at : at + 65].hex() for at in range(0, len(signature), 65)]
    try:
        return [recover_signer(digest, part) for part in parts] == [o.address for o in OWNERS]
    except SignatureError:
        return False


def bound_to(chain_id: int, owners: tuple[EvmWallet, ...] = OWNERS) -> Word:
    """A contract as real ones are: what it accepts is signed for its chain (EIP-712)."""

    def accepts(digest: bytes, signature: bytes) -> bool:
        return signature == bound(digest, chain_id, owners)

    return accepts


def bound(digest: bytes, chain_id: int, owners: tuple[EvmWallet, ...] = OWNERS) -> bytes:
    """What the owners of such a contract sign for a chain."""
    text = f"{chain_id}:{digest.hex()}"
    return b"".join(bytes.fromhex(owner.sign(text)[2:]) for owner in owners)


class Node(FaultyChain):
    """A chain with one contract wallet, or none; it says who asked it what."""

    def __init__(self, inner: Chain, asked: list[tuple[int, str, bytes, bytes]]) -> None:
        super().__init__(inner, at=0, fault=lambda call: call(), until=-1)
        self._asked = asked
        self.word: Word | None = None
        self.trouble: Exception | None = None

    def check_contract_signature(
        self, address: str, digest: bytes, signature: bytes
    ) -> bool | None:
        self._asked.append((self.chain_id, address, digest, signature))
        if self.trouble is not None:
            raise self.trouble
        if address != ADDRESS or self.word is None:
            return None
        return self.word(digest, signature)


class Street:
    """A world whose chains are such nodes."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.asked: list[tuple[int, str, bytes, bytes]] = []
        self.nodes = {id: Node(chain, self.asked) for id, chain in world.service.chains.items()}
        self.service = self.over(self.nodes)

    def over(self, nodes: Mapping[int, Chain], *added: Network) -> PaymentsService:
        return self.world.restarted(chains=nodes, networks=shipped_networks().merge(*added))

    def stands_on(self, chain_id: int, word: Word = both_owners) -> Street:
        self.nodes[chain_id].word = word
        return self

    @property
    def asked_chains(self) -> list[int]:
        return [chain_id for chain_id, *_ in self.asked]

    def challenge(
        self, address: str = ADDRESS, chain_type: Any = "evm", **more: Any
    ) -> WalletChallenge:
        account_id = more.pop("account_id", self.world.payer.id)
        wallets = self.service.acting_as(self.world.server).wallets
        return wallets.create_challenge(account_id, address, chain_type, **more)

    def answer(self, asked: WalletChallenge, signature: str, **more: Any) -> Wallet:
        more = {"account_id": asked.account_id, "challenge_id": asked.id, **more}
        return self.service.acting_as(self.world.server).wallets.add(signature=signature, **more)

    def linked(self) -> int:
        return self.world.get(Account, self.world.payer.id).wallet_count


@pytest.fixture
def street(memory_world: World) -> Street:
    return Street(memory_world)


def signed(asked: WalletChallenge) -> str:
    """What both owners sign."""
    return "0x" + "".join(owner.sign(asked.message)[2:] for owner in OWNERS)


@pytest.mark.parametrize("chain_id", REGISTRY)
def test_a_contract_wallet_is_linked_on_whichever_chain_it_stands(
    street: Street, chain_id: int
) -> None:
    street.stands_on(chain_id)
    asked = street.challenge()
    made = street.answer(asked, signed(asked))
    assert (made.address, made.verified, street.linked()) == (ADDRESS, True, 1)
    assert (made.contract_chains, made.key_proof) == ((chain_id,), False)
    assert street.asked_chains == list(REGISTRY)  # in its order, whichever said yes


def test_the_contract_is_asked_about_the_digest_that_wallets_sign(street: Street) -> None:
    asked = street.stands_on(1).challenge()
    street.answer(asked, signed(asked))
    raw = bytes.fromhex(signed(asked)[2:])
    digest = personal_digest(asked.message)
    assert street.asked == [(chain_id, ADDRESS, digest, raw) for chain_id in REGISTRY]


def test_a_contract_wallet_is_linked_on_every_storage(world: World) -> None:
    street = Street(world).stands_on(8453)
    asked = street.challenge()
    assert street.answer(asked, signed(asked)).verified
    with pytest.raises(ActionAlreadyUsed):
        street.answer(asked, signed(asked))


def test_a_keys_own_signature_asks_no_chain(street: Street) -> None:
    asked = street.challenge(OWNERS[0].address)
    assert street.answer(asked, OWNERS[0].sign(asked.message)).verified
    assert street.asked == []


@pytest.mark.parametrize("wallet", [SolanaWallet(21), AptosWallet(21)])
def test_a_wallet_that_is_not_a_contract_asks_no_chain(
    street: Street, wallet: SolanaWallet | AptosWallet
) -> None:
    asked = street.stands_on(1).challenge(wallet.address, wallet.chain_type)
    with pytest.raises(ValidationFailed):
        street.answer(asked, signed(asked), public_key=wallet.public_key)
    assert street.asked == []


def test_what_the_contract_refuses_links_nothing_and_spends_nothing(street: Street) -> None:
    asked, other = street.stands_on(1).challenge(), street.challenge()
    one, two = (owner.sign(asked.message)[2:] for owner in OWNERS)
    for signature in (signed(other), "0x" + one, "0x" + two + one, "0x" + one + two + "00"):
        with pytest.raises(ValidationFailed) as caught:
            street.answer(asked, signature)
        assert [field.path for field in caught.value.fields] == ["signature"]
    assert street.linked() == 0
    assert street.asked_chains == [*REGISTRY] * 4  # another chain may say yes
    assert street.answer(asked, signed(asked)).verified


def test_what_stands_nowhere_links_nothing(street: Street) -> None:
    asked = street.challenge()
    with pytest.raises(ValidationFailed):
        street.answer(asked, signed(asked))
    assert (street.linked(), street.asked_chains) == (0, list(REGISTRY))


def test_a_contract_that_stands_on_several_chains_is_linked_once(street: Street) -> None:
    for chain_id in REGISTRY[1:4]:
        street.stands_on(chain_id)
    asked = street.challenge()
    assert street.answer(asked, signed(asked)).contract_chains == REGISTRY[1:4]
    assert street.linked() == 1


@pytest.mark.parametrize(("one", "other"), list(permutations(REGISTRY, 2)))
def test_a_wallet_on_two_chains_is_linked_with_the_signature_for_either(
    street: Street, one: int, other: int
) -> None:
    for chain_id in (one, other):
        street.stands_on(chain_id, bound_to(chain_id))
    for done, chain_id in enumerate((one, other)):
        asked = street.challenge()
        signature = "0x" + bound(personal_digest(asked.message), chain_id).hex()
        made = street.answer(asked, signature)
        assert made.contract_chains == (one, other)[: done + 1]
    assert street.linked() == 1


class TestNamedChain:
    def test_only_the_chain_that_the_challenge_names_is_asked(self, street: Street) -> None:
        for chain_id in REGISTRY:
            street.stands_on(chain_id, bound_to(chain_id))
        asked = street.challenge(chain_id=10)
        assert "Chain: Optimism (10)" in asked.message.splitlines()
        digest = personal_digest(asked.message)
        with pytest.raises(ValidationFailed):
            street.answer(asked, "0x" + bound(digest, 8453).hex())
        assert street.asked_chains == [10]
        made = street.answer(asked, "0x" + bound(digest, 10).hex())
        assert (made.contract_chains, street.asked_chains) == ((10,), [10, 10])

    def test_a_key_proves_itself_on_every_chain(self, street: Street) -> None:
        asked = street.challenge(OWNERS[0].address, chain_id=10)
        made = street.answer(asked, OWNERS[0].sign(asked.message))
        assert made.is_verified_everywhere
        assert street.asked == []

    @pytest.mark.parametrize("wallet", [SolanaWallet(21), AptosWallet(21)])
    def test_it_is_for_evm_wallets(
        self, street: Street, wallet: SolanaWallet | AptosWallet
    ) -> None:
        with pytest.raises(ValidationFailed) as caught:
            street.challenge(wallet.address, wallet.chain_type, chain_id=10)
        assert [field.path for field in caught.value.fields] == ["chain_id"]

    def test_it_is_served(self, street: Street) -> None:
        with pytest.raises(UnsupportedChain):
            street.challenge(chain_id=56)

    def test_a_chain_that_is_served_no_longer_is_worth_a_retry(self, street: Street) -> None:
        asked = street.challenge(chain_id=10)
        street.service = street.over({id: one for id, one in street.nodes.items() if id != 10})
        with pytest.raises(DependencyFailed):
            street.answer(asked, signed(asked))


class TestForeignCode:
    """Somebody has code at the address of another's wallet, on another chain."""

    @pytest.fixture
    def street(self, world: World) -> Street:
        street = Street(world).stands_on(137, lambda *_: True)
        return street.stands_on(8453, bound_to(8453))

    def link(self, street: Street, account: Account, chain_id: int) -> Wallet:
        asked = street.challenge(account_id=account.id, chain_id=chain_id)
        signature = "0x" + bound(personal_digest(asked.message), chain_id).hex()
        return street.answer(asked, signature)

    @pytest.mark.parametrize("owner_first", [False, True])
    def test_each_links_it_on_its_own_chain_and_neither_on_the_others(
        self, street: Street, owner_first: bool
    ) -> None:
        payer, stranger = street.world.payer, street.world.merchant
        turns = [(payer, 8453), (stranger, 137)]
        for account, chain_id in turns if owner_first else turns[::-1]:
            made = self.link(street, account, chain_id)
            assert made.contract_chains == (chain_id,)
            assert made.is_verified_on(chain_id)
            assert not any(made.is_verified_on(id) for id in REGISTRY if id != chain_id)
        with pytest.raises(ResourceConflict):
            self.link(street, payer, 137)  # the stranger's chain
        with pytest.raises(ResourceConflict):
            self.link(street, stranger, 8453)  # though the owner's signature were stolen

    def test_of_two_accounts_at_one_moment_one_has_it_on_a_chain(self, street: Street) -> None:
        street.stands_on(10, lambda *_: True)
        accounts = (street.world.payer, street.world.merchant)
        for _ in range(3):
            challenges = [street.challenge(account_id=one.id, chain_id=10) for one in accounts]

            def answer(asked: WalletChallenge) -> Wallet | None:
                try:
                    return street.answer(asked, "0x12")
                except ResourceConflict:
                    return None

            with ThreadPoolExecutor(2) as pool:
                linked = [one for one in pool.map(answer, challenges) if one is not None]
            assert len(linked) == 1
            wallets = street.service.acting_as(street.world.server).wallets
            wallets.remove(linked[0].account_id, linked[0].id)

    def test_an_address_of_two_owners_is_nobodys(self, street: Street) -> None:
        server = street.world.server
        self.link(street, street.world.merchant, 137)
        assert (
            street.service.acting_as(server).accounts.find_by_wallet(ADDRESS).account.id
            == street.world.merchant.id
        )
        mine = self.link(street, street.world.payer, 8453)
        with pytest.raises(NotFound):
            street.service.acting_as(server).accounts.find_by_wallet(ADDRESS)
        street.service.acting_as(server).wallets.remove(street.world.payer.id, mine.id)
        assert (
            street.service.acting_as(server).accounts.find_by_wallet(ADDRESS).account.id
            == street.world.merchant.id
        )

    def test_an_unlinked_wallet_is_free_on_its_chains(self, street: Street) -> None:
        payer, stranger = street.world.payer, street.world.merchant
        made = self.link(street, stranger, 137)
        with pytest.raises(ResourceConflict):
            self.link(street, payer, 137)
        street.service.acting_as(street.world.server).wallets.remove(stranger.id, made.id)
        assert self.link(street, payer, 137).contract_chains == (137,)


def test_a_key_that_signed_owns_its_address_on_every_chain(street: Street) -> None:
    """Code at a key's address is its owner's (EIP-7702), and others may control it too."""
    signer, world = EvmWallet(23), street.world

    class Delegated(Node):
        def check_contract_signature(self, address: str, *_: bytes) -> bool | None:
            return address == signer.address or None

    street.service = street.over({10: Delegated(world.service.chains[10], street.asked)})
    by_contract = street.challenge(signer.address, account_id=world.merchant.id)
    made = street.answer(by_contract, "0x01")
    assert made.contract_chains == (10,)
    by_key = street.challenge(signer.address)
    with pytest.raises(ResourceConflict):
        street.answer(by_key, signer.sign(by_key.message))
    street.service.acting_as(world.server).wallets.remove(world.merchant.id, made.id)
    made = street.answer(by_key, signer.sign(by_key.message))
    assert made.is_verified_everywhere
    again = street.challenge(signer.address, account_id=world.merchant.id)
    with pytest.raises(ResourceConflict):
        street.answer(again, "0x01")
    too = street.challenge(signer.address)
    made = street.answer(too, "0x01")
    assert (made.is_verified_everywhere, made.contract_chains) == (True, (10,))


def test_an_odd_length_is_not_said_to_be_the_only_fault(street: Street) -> None:
    asked = street.challenge()
    for signature, words in ((signed(asked), "nor accepted"), (signed(asked)[:132], "not this")):
        with pytest.raises(ValidationFailed, match=words):
            street.answer(asked, signature)


def test_another_address_is_not_vouched_for(street: Street) -> None:
    asked = street.stands_on(1).challenge(EvmWallet(23).address)
    with pytest.raises(ValidationFailed):
        street.answer(asked, signed(asked))
    assert street.linked() == 0


@pytest.mark.parametrize(
    ("digits", "is_asked"),
    [
        ("", True),  # signed on chain, says a Safe
        ("00" * MAX_CONTRACT_SIGNATURE_BYTES, True),
        ("00" * (MAX_CONTRACT_SIGNATURE_BYTES + 1), False),
        ("0", False),
        ("zz", False),
    ],
)
def test_a_contracts_signature_is_hex_of_a_bounded_length(
    street: Street, digits: str, is_asked: bool
) -> None:
    asked = street.stands_on(1, lambda *_: True).challenge()
    if is_asked:
        assert street.answer(asked, "0x" + digits).verified
    else:
        with pytest.raises(ValidationFailed):
            street.answer(asked, "0x" + digits)
        assert street.asked == []


def test_a_public_key_beside_it_is_still_a_fault(street: Street) -> None:
    asked = street.stands_on(1).challenge()
    with pytest.raises(ValidationFailed) as caught:
        street.answer(asked, signed(asked), public_key="0x12")
    assert {field.path for field in caught.value.fields} == {"public_key", "signature"}
    assert street.asked == []


class TestOutOfReach:
    def test_a_silent_chain_is_worth_a_retry_and_no_refusal(self, street: Street) -> None:
        street.stands_on(137)
        street.nodes[137].trouble = ChainUnavailable("no answer")
        asked = street.challenge()
        with pytest.raises(DependencyFailed) as caught:
            street.answer(asked, signed(asked))
        assert (caught.value.dependency, caught.value.retryable) == ("chain", True)
        assert street.asked_chains == list(REGISTRY)
        assert street.linked() == 0
        street.nodes[137].trouble = None
        assert street.answer(asked, signed(asked)).verified

    @pytest.mark.parametrize(("yes", "silent"), [(1, 42161), (42161, 1)])
    def test_a_yes_needs_no_word_of_a_silent_chain(
        self, street: Street, yes: int, silent: int
    ) -> None:
        street.stands_on(yes).nodes[silent].trouble = ChainUnavailable("no answer")
        asked = street.challenge()
        assert street.answer(asked, signed(asked)).contract_chains == (yes,)

    def test_a_no_says_nothing_of_a_silent_chain(self, street: Street) -> None:
        street.stands_on(1, lambda *_: False).nodes[42161].trouble = ChainUnavailable("no answer")
        asked = street.challenge()
        with pytest.raises(DependencyFailed):
            street.answer(asked, signed(asked))
        street.nodes[42161].trouble = None
        with pytest.raises(ValidationFailed):
            street.answer(asked, signed(asked))

    def test_a_chain_without_contracts_is_passed_over(self, street: Street) -> None:
        for node in street.nodes.values():
            node.trouble = UnsupportedByChain("no contracts here")
        asked = street.challenge()
        with pytest.raises(ValidationFailed):
            street.answer(asked, signed(asked))
        street.stands_on(10).nodes[10].trouble = None
        assert street.answer(asked, signed(asked)).verified

    def test_slow_chains_are_not_all_asked(self, street: Street) -> None:
        def slow(digest: bytes, signature: bytes) -> bool:
            street.world.system.advance(MAX_CHECK_MS / 2_000)
            return False

        for chain_id in REGISTRY:
            street.stands_on(chain_id, slow)
        asked = street.challenge()
        with pytest.raises(DependencyFailed):
            street.answer(asked, signed(asked))
        assert street.asked_chains == list(REGISTRY[:2])

    def test_what_can_be_refused_without_them_is(self, street: Street) -> None:
        world, late, used = street.world, street.challenge(), street.challenge()
        street.stands_on(1)
        once_more = {"idempotency_key": once("k")}
        street.answer(used, signed(used), **once_more)
        street.asked.clear()
        for node in street.nodes.values():
            node.trouble = ChainUnavailable("no answer")
        with pytest.raises(AlreadyResponded):
            street.answer(used, signed(used), **once_more)
        with pytest.raises(ActionAlreadyUsed):
            street.answer(used, signed(used))
        for more in ({"account_id": world.merchant.id}, {"challenge_id": "wallet_challenge_none"}):
            with pytest.raises(NotFound):
                street.answer(late, signed(late), **more)
        world.system.advance(600)
        with pytest.raises(ActionExpired):
            street.answer(late, signed(late))
        assert street.asked == []

    def test_a_suspended_account_hears_that_first(self, street: Street) -> None:
        asked = street.challenge()
        street.nodes[1].trouble = ChainUnavailable("no answer")
        street.service.acting_as(street.world.server).accounts.change(
            street.world.payer.id, status="closed"
        )
        with pytest.raises(AccountSuspended):
            street.answer(asked, signed(asked))


def test_an_added_chain_comes_last_and_one_of_another_type_not_at_all(street: Street) -> None:
    class Elsewhere(Node):
        chain_id = 99

    class Solana(Node):
        chain_id = 7
        chain_type = "solana"

    inner = street.world.chain
    nodes: dict[int, Chain] = {7: Solana(inner, street.asked), 99: Elsewhere(inner, street.asked)}
    base = shipped_networks()[8453]
    far = Asset(99, "USDC", "0x" + "9" * 40, 6)
    added = attrs.evolve(base, chain_id=99, tokens=(far,), watch_list=())
    street.service = street.over({**nodes, **dict(reversed(street.nodes.items()))}, added)
    asked = street.challenge()
    with pytest.raises(ValidationFailed):
        street.answer(asked, signed(asked))
    assert street.asked_chains == [*REGISTRY, 99]


class Guarded(MemoryStorage):
    """Says whether a transaction is open."""

    is_open = False

    def transact(self, partition: str, work: Any) -> Any:
        def guarded(tx: Any) -> Any:
            self.is_open = True
            try:
                return work(tx)
            finally:
                self.is_open = False

        return super().transact(partition, guarded)


def test_no_chain_is_asked_within_a_transaction() -> None:
    storage, seen = Guarded(), []
    street = Street(funded(storage))

    def word(digest: bytes, signature: bytes) -> bool:
        seen.append(storage.is_open)
        return both_owners(digest, signature)

    asked = street.stands_on(1, word).challenge()
    street.answer(asked, signed(asked))
    assert seen == [False]


class TestSimulated:
    def test_no_address_of_a_simulated_chain_vouches(self, memory_world: World) -> None:
        chain = memory_world.chain
        for address in (memory_world.vault_address(), ADDRESS):
            assert chain.check_contract_signature(address, b"\0" * 32, b"") is None

    def test_a_failure_on_call_is_worth_a_retry(self, memory_world: World) -> None:
        world = memory_world
        wallets = world.resources.wallets
        asked = wallets.create_challenge(world.payer.id, ADDRESS, "evm")
        world.fail("any")
        for refused in (DependencyFailed, ValidationFailed):
            with pytest.raises(refused):
                wallets.add(world.payer.id, asked.id, signed(asked))


def test_a_claim_does_not_show_its_signature(street: Street) -> None:
    asked = street.challenge()
    street.stands_on(1, lambda *_: False)
    with pytest.raises(ValidationFailed) as caught:
        street.answer(asked, signed(asked))
    assert signed(asked)[2:] not in str(attrs.asdict(caught.value))
