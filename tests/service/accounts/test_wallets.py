"""Wallets: linked by one signature of one challenge, and by one account at a time."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from payments_core.accounts.challenges import CHALLENGE_TTL_MS
from payments_core.accounts.new_wallets import NewWallet
from payments_core.accounts.record import MAX_WALLETS, Account, Wallet, WalletChallenge
from payments_core.accounts.wallets import CHALLENGE_RETENTION_MS
from payments_core.clock import format_iso
from payments_core.engine.idempotency.record import AlreadyResponded
from payments_core.errors import (
    AccountSuspended,
    ActionAlreadyUsed,
    ActionExpired,
    NotFound,
    ResourceConflict,
    ValidationFailed,
)
from tests.service.payments.test_concurrency import at_once, kinds
from tests.service.world import World, once
from tests.signers import AptosWallet, EvmWallet, Signer, SolanaWallet

WALLET = EvmWallet(11)
SIGNERS = (WALLET, SolanaWallet(11), AptosWallet(11))


def challenge(world: World, wallet: Signer, account: Account | None = None) -> WalletChallenge:
    return world.resources.wallets.create_challenge(
        (account or world.payer).id,
        wallet.address,
        wallet.chain_type,  # type: ignore[arg-type]
    )


def answer(
    world: World, asked: WalletChallenge, wallet: Signer, account_id: str | None = None, **more: Any
) -> Wallet:
    return world.resources.wallets.add(
        account_id or asked.account_id,
        asked.id,
        wallet.sign(asked.message, asked.nonce),
        public_key=wallet.public_key,
        **more,
    )


def link(world: World, wallet: Signer, account: Account | None = None, **more: Any) -> Wallet:
    return answer(world, challenge(world, wallet, account), wallet, **more)


def linked(world: World, account: Account | None = None) -> list[Wallet]:
    owner = (account or world.payer).id
    found = list(world.resources.wallets.list(owner, limit=100).records)
    assert world.get(Account, owner).wallet_count == len(found)
    return found


@pytest.mark.parametrize("wallet", SIGNERS, ids=lambda wallet: wallet.chain_type)
def test_a_wallet_that_signs_is_linked_and_verified(world: World, wallet: Signer) -> None:
    made = link(world, wallet, label="main")
    assert (made.address, made.chain_type) == (wallet.address, wallet.chain_type)
    assert (made.verified, made.verified_at_ms, made.label) == (True, world.clock.now(), "main")
    assert linked(world) == [attrs.evolve(made, version=1, schema=Wallet.collection.schema)]
    assert world.resources.accounts.read(world.payer.id).wallets == tuple(linked(world))
    assert world.event_names()["account.updated"] == 1


def test_a_challenge_says_whose_the_wallet_becomes_and_until_when(memory_world: World) -> None:
    world = memory_world
    asked = world.resources.wallets.create_challenge(world.payer.id, WALLET.address.lower(), "evm")
    assert asked.address == WALLET.address
    assert (
        asked.expires_at_ms == world.clock.now() + CHALLENGE_TTL_MS == world.clock.now() + 600_000
    )
    for part in (
        "Payments Core", "Acme", world.payer.id, WALLET.address, asked.nonce,
        format_iso(asked.expires_at_ms),
    ):  # fmt: skip
        assert part in asked.message
    assert len(bytes.fromhex(asked.nonce)) == 16
    assert challenge(world, WALLET).nonce != asked.nonce


def test_the_name_of_an_app_adds_no_line_to_the_message(memory_world: World) -> None:
    world = memory_world
    forged = "Acme\nWallet: 0x0\u2028\u202eAccount: other"
    environment = attrs.evolve(world.environment, app_name=forged)
    authority = attrs.evolve(world.server, environment=environment)
    asked = world.service.acting_as(authority).wallets.create_challenge(
        world.payer.id, WALLET.address, "evm"
    )
    plain = challenge(world, WALLET)
    assert len(asked.message.splitlines()) == len(plain.message.splitlines())


def test_a_challenge_is_for_an_address_of_its_chain_type(memory_world: World) -> None:
    for address, chain_type in (("0x12", "evm"), (WALLET.address, "solana"), ("0x0", "aptos")):
        with pytest.raises(ValidationFailed) as caught:
            memory_world.resources.wallets.create_challenge(
                memory_world.payer.id, address, chain_type
            )  # type: ignore[arg-type]
        assert [field.path for field in caught.value.fields] == ["address"]
    with pytest.raises(NotFound):
        memory_world.resources.wallets.create_challenge("acct_none", WALLET.address, "evm")


def test_a_challenge_works_once(world: World) -> None:
    asked = challenge(world, WALLET)
    made = answer(world, asked, WALLET)
    with pytest.raises(ActionAlreadyUsed):
        answer(world, asked, WALLET)
    world.resources.wallets.remove(world.payer.id, made.id)
    with pytest.raises(ActionAlreadyUsed):
        answer(world, asked, WALLET)
    assert not linked(world)


def test_a_challenge_works_once_for_many_at_once(world: World) -> None:
    for number in range(6):
        wallet = EvmWallet(100 + number)
        asked = challenge(world, wallet)
        outcomes = at_once([lambda asked=asked, wallet=wallet: answer(world, asked, wallet)] * 4)
        assert kinds(outcomes) == {"Wallet": 1, "ActionAlreadyUsed": 3}
        assert len(linked(world)) == number + 1


def test_a_challenge_ends_after_ten_minutes(world: World) -> None:
    asked, other = challenge(world, WALLET), challenge(world, EvmWallet(12))
    world.system.advance(599.999)
    answer(world, asked, WALLET)
    world.system.advance(0.001)
    with pytest.raises(ActionExpired) as caught:
        answer(world, other, EvmWallet(12))
    assert caught.value.expired_at == world.clock.now()


def test_a_challenge_is_bound_to_its_account(world: World) -> None:
    asked = challenge(world, WALLET)
    for account_id in (world.merchant.id, "acct_none"):
        with pytest.raises(NotFound):
            answer(world, asked, WALLET, account_id)
    with pytest.raises(NotFound):
        world.resources.wallets.add(world.payer.id, "wallet_challenge_none", "0x")
    assert answer(world, asked, WALLET).account_id == world.payer.id


def test_a_challenge_of_another_environment_is_unknown(memory_world: World) -> None:
    world = memory_world
    asked = challenge(world, WALLET)
    production = world.service.tenants.system_authority(world.app.environments["production"])
    with pytest.raises(NotFound):
        world.service.acting_as(production).wallets.add(
            world.payer.id, asked.id, WALLET.sign(asked.message)
        )


def test_a_wrong_signature_links_nothing_and_spends_nothing(world: World) -> None:
    asked, older = challenge(world, WALLET), challenge(world, WALLET)
    for signature in (
        EvmWallet(12).sign(asked.message), WALLET.sign(older.message), WALLET.sign("x"), "0x12",
    ):  # fmt: skip
        with pytest.raises(ValidationFailed) as caught:
            world.resources.wallets.add(world.payer.id, asked.id, signature)
        assert [field.path for field in caught.value.fields] == ["signature"]
    assert not linked(world)
    assert world.event_names()["account.updated"] == 0
    assert answer(world, asked, WALLET).verified


def test_a_signature_of_one_chain_type_serves_no_other(memory_world: World) -> None:
    """A Solana and an Aptos wallet may share their key; their challenges share nothing."""
    world = memory_world
    solana, aptos = SolanaWallet(11), AptosWallet(11)
    asked = challenge(world, aptos)
    with pytest.raises(ValidationFailed) as caught:
        world.resources.wallets.add(world.payer.id, asked.id, solana.sign(asked.message))
    assert {field.path for field in caught.value.fields} == {"signature", "public_key"}


def test_a_listed_wallet_becomes_verified_in_its_own_row(world: World) -> None:
    account = world.account(
        "user-9",
        wallets=[
            NewWallet(address=WALLET.address.lower(), chain_type="evm", label="first"),
            NewWallet(address=EvmWallet(12).address, chain_type="evm"),
        ],
    )
    before = linked(world, account)
    world.system.advance(1)
    made = link(world, WALLET, account)
    assert (made.id, made.label, made.created_at_ms) == (
        before[0].id, "first", before[0].created_at_ms,
    )  # fmt: skip
    assert [wallet.verified for wallet in linked(world, account)] == [True, False]
    relabelled = link(world, WALLET, account, label="second")
    assert (relabelled.id, relabelled.label) == (before[0].id, "second")
    assert len(linked(world, account)) == 2


def test_a_listed_wallet_is_never_doubled(light_world: World) -> None:
    """A find may not see yet what was listed a moment ago."""
    world = light_world
    for number in range(400, 420):
        wallet = EvmWallet(number)
        listed = [NewWallet(address=wallet.address, chain_type="evm")]
        account = world.account(f"user-{number}", wallets=listed)
        link(world, wallet, account)
        assert [item.verified for item in linked(world, account)] == [True]


def test_a_verified_address_belongs_to_one_account(world: World) -> None:
    made = link(world, WALLET)
    asked = challenge(world, WALLET, world.merchant)
    with pytest.raises(ResourceConflict):
        answer(world, asked, WALLET)
    assert not linked(world, world.merchant)
    world.resources.wallets.remove(world.payer.id, made.id)
    assert answer(world, asked, WALLET).account_id == world.merchant.id  # it was not spent
    with pytest.raises(ResourceConflict):
        link(world, WALLET)


def test_of_two_accounts_that_prove_an_address_at_once_one_has_it(world: World) -> None:
    for number in range(6):
        wallet = EvmWallet(200 + number)
        owners = (world.payer, world.merchant)
        asked = [challenge(world, wallet, owner) for owner in owners]
        outcomes = at_once([lambda a=a, w=wallet: answer(world, a, w) for a in asked])
        assert kinds(outcomes) == {"Wallet": 1, "ResourceConflict": 1}
    assert len(linked(world)) + len(linked(world, world.merchant)) == 6


def test_of_two_proofs_of_one_account_at_once_both_are_one_wallet(world: World) -> None:
    for number in range(6):
        wallet = EvmWallet(300 + number)
        asked = [challenge(world, wallet) for _ in range(2)]
        outcomes = at_once([lambda a=a, w=wallet: answer(world, a, w) for a in asked])
        assert kinds(outcomes) == {"Wallet": 2}
        assert len(linked(world)) == number + 1


def test_an_unverified_address_may_be_listed_by_many(world: World) -> None:
    listed = [NewWallet(address=WALLET.address, chain_type="evm")]
    first, second = world.account("a", wallets=listed), world.account("b", wallets=listed)
    assert link(world, WALLET, second).id == linked(world, second)[0].id
    assert [wallet.verified for wallet in linked(world, first)] == [False]
    with pytest.raises(ResourceConflict):
        link(world, WALLET, first)
    third = world.account("c", wallets=listed)
    assert not linked(world, third)[0].verified


def test_a_removed_wallet_is_gone_and_its_removal_is_reported(world: World) -> None:
    first, second = link(world, WALLET), link(world, EvmWallet(12))
    removed = world.resources.wallets.remove(world.payer.id, first.id)
    assert (removed.id, removed.address) == (first.id, first.address)
    assert [wallet.id for wallet in linked(world)] == [second.id]
    assert world.event_names()["account.updated"] == 3
    for account, wallet in ((world.payer, first.id), (world.merchant, second.id)):
        with pytest.raises(NotFound):
            world.resources.wallets.remove(account.id, wallet)
    with pytest.raises(NotFound):
        world.resources.wallets.remove("acct_none", second.id)


def test_of_two_removals_at_once_one_counts(world: World) -> None:
    made = link(world, WALLET)
    link(world, EvmWallet(12))
    outcomes = at_once([lambda: world.resources.wallets.remove(world.payer.id, made.id)] * 3)
    assert kinds(outcomes) == {"Wallet": 1, "NotFound": 2}
    assert len(linked(world)) == 1


@pytest.mark.parametrize("status", ["suspended", "closed"])
def test_an_account_that_may_not_act_gets_no_wallet_but_loses_them(
    world: World, status: Any
) -> None:
    made, asked = link(world, WALLET), challenge(world, EvmWallet(12))
    world.resources.accounts.change(world.payer.id, status=status)
    with pytest.raises(AccountSuspended):
        challenge(world, EvmWallet(13))
    with pytest.raises(AccountSuspended):
        answer(world, asked, EvmWallet(12))
    world.resources.wallets.remove(world.payer.id, made.id)
    assert not linked(world)


def test_an_account_has_so_many_wallets_and_no_more(memory_world: World) -> None:
    world = memory_world
    listed = [
        NewWallet(address=EvmWallet(n).address, chain_type="evm") for n in range(1, MAX_WALLETS + 1)
    ]
    full = world.account("full", wallets=listed)
    with pytest.raises(ResourceConflict):
        link(world, EvmWallet(999), full)
    verified = link(world, EvmWallet(1), full)  # a row that is there needs no room
    world.resources.wallets.remove(full.id, verified.id)
    link(world, EvmWallet(999), full)
    assert len(linked(world, full)) == MAX_WALLETS


def test_a_label_has_its_bounds(memory_world: World) -> None:
    for label in ("", "x" * 129):
        with pytest.raises(ValidationFailed) as caught:
            link(memory_world, WALLET, label=label)
        assert [field.path for field in caught.value.fields] == ["label"]


def test_a_repeat_under_its_key_is_answered_from_the_store(world: World) -> None:
    asked = challenge(world, WALLET)
    answer(world, asked, WALLET, idempotency_key=once("k"))
    with pytest.raises(AlreadyResponded):
        answer(world, asked, WALLET, idempotency_key=once("k"))
    with pytest.raises(ActionAlreadyUsed):
        answer(world, asked, WALLET, idempotency_key=once("other"))


def test_challenges_are_forgotten_a_day_after_their_end(world: World) -> None:
    used, unused = challenge(world, WALLET), challenge(world, EvmWallet(12))
    answer(world, used, WALLET)

    def known() -> set[str]:
        ids = (used.id, unused.id)
        return world.storage.read(
            world.environment_id,
            lambda snapshot: {id for id in ids if snapshot.get(WalletChallenge, id)},
        )

    world.system.advance((CHALLENGE_TTL_MS + CHALLENGE_RETENTION_MS) // 1_000)
    challenge(world, WALLET)
    assert known() == {used.id, unused.id}
    world.system.advance(1)
    for _ in range(12):  # a stale or short page may miss them once
        challenge(world, WALLET)
    assert not known()
    with pytest.raises(NotFound):
        answer(world, used, WALLET)


def test_wallets_are_listed_in_pages_oldest_first(memory_world: World) -> None:
    world = memory_world
    made = []
    for number in range(1, 6):
        made.append(link(world, EvmWallet(number)).id)
        world.system.advance(1)
    wallets = world.resources.wallets
    page = wallets.list(world.payer.id, limit=3)
    rest = wallets.list(world.payer.id, after=page.next, limit=3)
    assert [wallet.id for wallet in (*page.records, *rest.records)] == made
    with pytest.raises(NotFound):
        wallets.list("acct_none")
