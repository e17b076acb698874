"""Contract wallets (ERC-1271): linked by a contract's word, which none elsewhere may deny."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import permutations
from typing import Any

import attrs
import pytest

from payments_core.accounts.erc1271 import MAX_CHECK_MS
from payments_core.accounts.record import Account, Wallet, WalletChallenge
from payments_core.accounts.wallet_signatures import personal_digest
from payments_core.assets import CHAINS
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
    ValidationFailed,
)
from payments_core.service import PaymentsService
from payments_core.storage.memory.adapter import MemoryStorage
from tests.service.conftest import funded
from tests.service.faults import FaultyChain
from tests.service.world import World, once
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

    def over(self, nodes: Mapping[int, Chain]) -> PaymentsService:
        return self.world.restarted(chains=nodes)

    def stands_on(self, chain_id: int, word: Word = both_owners) -> Street:
        self.nodes[chain_id].word = word
        return self

    @property
    def asked_chains(self) -> list[int]:
        return [chain_id for chain_id, *_ in self.asked]

    def challenge(self, address: str = ADDRESS, chain_type: Any = "evm") -> WalletChallenge:
        wallets, payer = self.service.wallets, self.world.payer
        return wallets.challenge(self.world.server, payer.id, address, chain_type)

    def answer(self, asked: WalletChallenge, signature: str, **more: Any) -> Wallet:
        more = {"account_id": asked.account_id, "challenge_id": asked.id, **more}
        return self.service.wallets.add(self.world.server, signature=signature, **more)

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
    assert street.asked_chains == [REGISTRY[0]] * 4  # one no is enough
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
    assert street.answer(asked, signed(asked)).verified
    assert street.linked() == 1


@pytest.mark.parametrize(("taken", "owned"), list(permutations(REGISTRY, 2)))
def test_who_controls_the_address_on_one_chain_cannot_link_it_against_its_owner(
    street: Street, taken: int, owned: int
) -> None:
    street.stands_on(taken, lambda *_: True)
    street.stands_on(owned)
    asked = street.challenge()
    with pytest.raises(ValidationFailed) as caught:
        street.answer(asked, OWNERS[0].sign(asked.message))
    assert [field.path for field in caught.value.fields] == ["signature"]
    assert street.linked() == 0
    assert street.asked_chains == list(REGISTRY[: REGISTRY.index(owned) + 1])
    assert street.answer(asked, signed(asked)).verified  # by both owners, as both accept


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
    assert {field.path for field in caught.value.fields} == {"publicKey", "signature"}
    assert street.asked == []


class TestOutOfReach:
    def test_a_silent_chain_is_worth_a_retry_and_no_refusal(self, street: Street) -> None:
        street.stands_on(137)
        street.nodes[137].trouble = ChainUnavailable("no answer")
        asked = street.challenge()
        with pytest.raises(DependencyFailed) as caught:
            street.answer(asked, signed(asked))
        assert (caught.value.dependency, caught.value.retryable) == ("chain", True)
        assert street.asked_chains == list(REGISTRY[: REGISTRY.index(137) + 1])
        assert street.linked() == 0
        street.nodes[137].trouble = None
        assert street.answer(asked, signed(asked)).verified

    @pytest.mark.parametrize(("yes", "silent"), [(1, 42161), (42161, 1)])
    def test_a_yes_from_another_chain_is_not_enough(
        self, street: Street, yes: int, silent: int
    ) -> None:
        street.stands_on(yes).nodes[silent].trouble = ChainUnavailable("no answer")
        asked = street.challenge()
        with pytest.raises(DependencyFailed):
            street.answer(asked, signed(asked))
        assert street.linked() == 0

    def test_a_no_from_a_chain_before_is_enough(self, street: Street) -> None:
        street.stands_on(1, lambda *_: False).nodes[42161].trouble = ChainUnavailable("no answer")
        asked = street.challenge()
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
            return True

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
        street.service.accounts.update(street.world.server, street.world.payer.id, status="closed")
        with pytest.raises(AccountSuspended):
            street.answer(asked, signed(asked))


def test_chains_outside_the_registry_come_last_and_others_not_at_all(street: Street) -> None:
    class Elsewhere(Node):
        chain_id = 99

    class Solana(Node):
        chain_type = "solana"

    inner = street.world.chain
    nodes: dict[int, Chain] = {7: Solana(inner, street.asked), 99: Elsewhere(inner, street.asked)}
    street.service = street.over({**nodes, **dict(reversed(street.nodes.items()))})
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
        wallets = world.service.wallets
        asked = wallets.challenge(world.server, world.payer.id, ADDRESS, "evm")
        world.fail("any")
        for refused in (DependencyFailed, ValidationFailed):
            with pytest.raises(refused):
                wallets.add(world.server, world.payer.id, asked.id, signed(asked))


def test_a_claim_does_not_show_its_signature(street: Street) -> None:
    asked = street.challenge()
    street.stands_on(1, lambda *_: False)
    with pytest.raises(ValidationFailed) as caught:
        street.answer(asked, signed(asked))
    assert signed(asked)[2:] not in str(attrs.asdict(caught.value))
