"""Accounts: made once, changed with an event, read by their own tenant."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from payments_core.accounts.new_wallets import NewWallet
from payments_core.accounts.operations import MAX_WALLETS
from payments_core.accounts.record import Account, Settlement
from payments_core.engine.idempotency.record import AlreadyResponded
from payments_core.errors import (
    AccountSuspended,
    InvalidState,
    NotFound,
    ResourceConflict,
    UnsupportedAsset,
    UnsupportedChain,
    UsernameTaken,
    ValidationFailed,
)
from tests.service.payments.test_concurrency import at_once, kinds
from tests.service.world import World, answer_of, atomic, once

EVM = "0x7476609c9e396ea1ecAFDfaf204457d0B83a338f"
SOLANA = "EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v"


def test_an_account_is_made_with_all_that_was_given(world: World) -> None:
    account = world.account(
        "user-9",
        username="Nine_9",
        email="nine@example.com",
        settlement=Settlement(chain_id=137, asset_symbol="USDC"),
        metadata={"tier": 3},
        wallets=[
            NewWallet(address=EVM.lower(), chain_type="evm", label="main"),
            NewWallet(address=SOLANA, chain_type="solana"),
            NewWallet(address="0x1", chain_type="aptos"),
        ],
    )
    details = world.resources.accounts.read(account.id)
    assert details.account.payment_address == "Nine_9@acme"
    assert details.account.status == "active"
    assert details.account.kyc_status == "not_started"
    assert details.account.metadata == {"tier": 3}
    assert [wallet.address for wallet in details.wallets] == [
        EVM, SOLANA, "0x" + "0" * 63 + "1",
    ]  # fmt: skip
    assert not any(wallet.verified for wallet in details.wallets)
    assert details.wallets[0].label == "main"


def test_one_external_user_has_one_account(world: World) -> None:
    with pytest.raises(ResourceConflict):
        world.account("payer", username="another")
    page = world.resources.accounts.list(external_user_id="payer")
    assert [item.account.id for item in page.records] == [world.payer.id]
    assert world.event_names()["account.created"] == 2


def test_a_username_is_taken_whatever_its_case(world: World) -> None:
    with pytest.raises(UsernameTaken):
        world.account("user-9", username="MerChant")
    world.account("user-9", username="merchant2")
    world.account("user-10")
    world.account("user-11")  # no name is not a name that is taken


def test_the_same_names_serve_in_another_environment(world: World) -> None:
    from payments_core.accounts.operations import NewAccount

    production = world.service.tenants.system_authority(world.app.environments["production"])
    new = NewAccount(external_user_id="payer", subject_type="business", username="merchant")
    made = world.service.acting_as(production).accounts.create(new)
    assert made.account.id != world.payer.id
    assert made.vaults[0].address != world.vault_address()
    with pytest.raises(NotFound):
        world.resources.accounts.read(made.account.id)
    with pytest.raises(NotFound):
        world.resources.accounts.read_balances(made.account.id)


@pytest.mark.parametrize(
    ("paths", "given"),
    [
        (["external_user_id"], {"external_user_id": ""}),
        (["external_user_id"], {"external_user_id": "x" * 129}),
        (["username"], {"username": "ab"}),
        (["username"], {"username": "a" * 21}),
        (["username"], {"username": "né_1"}),
        (["username"], {"username": "abc\n"}),
        (["wallets[0].address"], {"wallets": [NewWallet(address="0x0", chain_type="evm")]}),
        (
            ["wallets[1].address"],
            {
                "wallets": [
                    NewWallet(address=EVM, chain_type="evm"),
                    NewWallet(address=EVM.lower(), chain_type="evm"),
                ]
            },
        ),
        (
            ["wallets"],
            {
                "wallets": [
                    NewWallet(address=f"0x{n:040x}", chain_type="evm")
                    for n in range(1, MAX_WALLETS + 2)
                ]
            },
        ),
        (
            ["wallets[0].address", "wallets[2].address"],
            {
                "wallets": [
                    NewWallet(address=EVM.swapcase().replace("0X", "0x"), chain_type="evm"),
                    NewWallet(address=SOLANA, chain_type="solana"),
                    NewWallet(address="0xg", chain_type="aptos"),
                ],
            },
        ),
    ],
)
def test_every_fault_is_named_with_its_path(
    memory_world: World, paths: list[str], given: dict[str, Any]
) -> None:
    given = {"external_user_id": "user-9", **given}
    with pytest.raises(ValidationFailed) as caught:
        memory_world.account(**given)
    assert [field.path for field in caught.value.fields] == paths
    assert memory_world.event_names()["account.created"] == 2


def test_a_settlement_preference_must_be_served(memory_world: World) -> None:
    with pytest.raises(UnsupportedChain):
        memory_world.account("u", settlement=Settlement(chain_id=2, asset_symbol="USDC"))
    with pytest.raises(UnsupportedAsset):
        memory_world.account("u", settlement=Settlement(chain_id=137, asset_symbol="USDT"))


def test_a_change_has_its_event_and_leaves_the_rest_alone(world: World) -> None:
    world.system.advance(5)
    changed = world.resources.accounts.change(world.merchant.id, email="m@example.com").account
    assert (changed.email, changed.username, changed.status) == (
        "m@example.com", "merchant", "active",
    )  # fmt: skip
    assert changed.updated_at_ms == world.clock.now()
    world.resources.accounts.change(world.merchant.id, email=None, metadata={"a": 1})
    after = world.resources.accounts.read(world.merchant.id).account
    assert (after.email, after.metadata) == (None, {"a": 1})
    assert world.event_names()["account.updated"] == 2


def test_a_change_of_nothing_is_not_a_change_and_has_no_event(world: World) -> None:
    server, id = world.server, world.merchant.id
    settlement = Settlement(chain_id=137, asset_symbol="USDC")
    world.service.acting_as(server).accounts.set_settlement(id, settlement)
    before = (
        world.service.acting_as(server)
        .accounts.change(id, email="m@example.com", metadata={"a": 1})
        .account
    )
    events = world.event_names()["account.updated"]
    world.system.advance(5)
    for again in (
        world.service.acting_as(server).accounts.change(id),
        world.service.acting_as(server).accounts.change(
            id, email="m@example.com", metadata={"a": 1}, status="active"
        ),
        world.service.acting_as(server).accounts.set_settlement(id, settlement),
    ):
        assert attrs.evolve(again.account, version=0) == attrs.evolve(before, version=0)
    stored = world.get(Account, id)
    assert (stored.updated_at_ms, world.event_names()["account.updated"]) == (
        before.updated_at_ms, events,
    )  # fmt: skip
    world.service.acting_as(server).accounts.change(
        id, metadata={"a": True}
    )  # equal to 1 in Python, and not in JSON
    assert world.get(Account, id).metadata == {"a": True}
    assert world.get(Account, id).metadata["a"] is True
    assert world.event_names()["account.updated"] == events + 1


def test_a_change_of_nothing_keeps_its_answer_for_its_key(world: World) -> None:

    def change() -> Any:
        return world.resources.accounts.change(
            world.merchant.id, status="active", idempotency_key=once("k")
        )

    assert answer_of(change) is None
    world.resources.accounts.change(world.merchant.id, status="suspended")
    assert answer_of(change) is not None
    assert world.get(Account, world.merchant.id).status == "suspended"


def test_a_closed_account_stays_closed(world: World) -> None:
    world.resources.accounts.change(world.payer.id, status="suspended")
    world.resources.accounts.change(world.payer.id, status="active")
    world.resources.accounts.change(world.payer.id, status="closed")
    world.resources.accounts.change(world.payer.id, status="closed", email="x@example.com")
    for status in ("active", "suspended"):
        with pytest.raises(InvalidState):
            world.resources.accounts.change(world.payer.id, status=status)
    with pytest.raises(NotFound):
        world.resources.accounts.change("acct_none", email="x@example.com")


def test_a_settlement_preference_is_changed_for_payments_to_come(world: World) -> None:
    before = world.payment()
    world.system.advance(1)
    changed = world.resources.accounts.set_settlement(
        world.merchant.id, Settlement(chain_id=1, asset_symbol="USDT")
    ).account
    assert changed.settlement == Settlement(chain_id=1, asset_symbol="USDT")
    assert changed.updated_at_ms == world.clock.now()
    after = world.payment()
    assert (before.payment.chain_id, before.payment.asset_symbol) == (8453, "USDC")
    assert (after.payment.chain_id, after.payment.asset_symbol) == (1, "USDT")
    assert world.event_names()["account.updated"] == 1


@pytest.mark.parametrize(
    ("chain_id", "symbol", "error"),
    [(2, "USDC", UnsupportedChain), (137, "USDT", UnsupportedAsset)],
)
def test_a_preference_that_is_not_served_changes_nothing(
    memory_world: World, chain_id: int, symbol: str, error: type[Exception]
) -> None:
    settlement = Settlement(chain_id=chain_id, asset_symbol=symbol)
    accounts = memory_world.resources.accounts
    with pytest.raises(error):
        accounts.set_settlement(memory_world.payer.id, settlement)
    account = accounts.read(memory_world.payer.id).account
    assert account.settlement is None
    assert memory_world.event_names()["account.updated"] == 0


def test_a_username_is_given_once(world: World) -> None:
    named = world.resources.accounts.set_handle(world.payer.id, "Payer_1").account
    assert named.payment_address == "Payer_1@acme"
    for another in ("payer_1", "other"):
        with pytest.raises(InvalidState):
            world.resources.accounts.set_handle(world.payer.id, another)
    with pytest.raises(InvalidState):
        world.resources.accounts.set_handle(world.merchant.id, "other")
    stored = world.get(Account, world.payer.id)
    assert (
        world.resources.accounts.set_handle(world.payer.id, "Payer_1").account.username == "Payer_1"
    )
    assert world.get(Account, world.payer.id) == stored
    assert world.event_names()["account.updated"] == 1


def test_a_username_is_given_to_one_account(world: World) -> None:
    with pytest.raises(UsernameTaken):
        world.resources.accounts.set_handle(world.payer.id, "MERCHANT")
    assert world.get(Account, world.payer.id).username is None
    world.resources.accounts.set_handle(world.payer.id, "payer")
    with pytest.raises(UsernameTaken):
        world.account("user-9", username="PAYER")


def test_of_many_that_want_a_username_at_once_one_gets_it(world: World) -> None:
    for place in range(4):
        owners = [world.account(f"a{place}-{n}") for n in range(3)]
        outcomes = at_once(
            [
                lambda o=o, p=place: world.resources.accounts.set_handle(o.id, f"name_{p}")
                for o in owners
            ]
        )
        assert kinds(outcomes) == {"AccountDetails": 1, "UsernameTaken": 2}


def test_of_many_usernames_at_once_an_account_gets_one(world: World) -> None:
    outcomes = at_once(
        [
            lambda n=n: world.resources.accounts.set_handle(world.payer.id, f"n_{n}")
            for n in range(4)
        ]
    )
    assert kinds(outcomes) == {"AccountDetails": 1, "InvalidState": 3}


@pytest.mark.parametrize("username", ["ab", "a" * 21, "né_1", "abc\n", "a b", ""])
def test_a_username_has_its_letters(memory_world: World, username: str) -> None:
    with pytest.raises(ValidationFailed) as caught:
        memory_world.resources.accounts.set_handle(memory_world.payer.id, username)
    assert [field.path for field in caught.value.fields] == ["username"]


def test_a_closed_account_takes_neither_name_nor_preference_a_suspended_one_does(
    world: World,
) -> None:
    server, payer = world.server, world.payer.id
    settlement = Settlement(chain_id=137, asset_symbol="USDC")
    world.service.acting_as(server).accounts.change(payer, status="suspended")
    world.service.acting_as(server).accounts.set_settlement(payer, settlement)
    world.service.acting_as(server).accounts.change(payer, status="closed")
    with pytest.raises(AccountSuspended):
        world.service.acting_as(server).accounts.set_settlement(payer, settlement)
    with pytest.raises(AccountSuspended):
        world.service.acting_as(server).accounts.set_handle(payer, "payer")
    with pytest.raises(NotFound):
        world.service.acting_as(server).accounts.set_handle("acct_none", "payer")
    with pytest.raises(NotFound):
        world.service.acting_as(server).accounts.set_settlement("acct_none", settlement)


def test_every_capability_is_inactive_and_says_what_it_waits_for(memory_world: World) -> None:
    world = memory_world

    def seen(missing_kyc: str) -> None:
        found = world.resources.accounts.read_capabilities(world.payer.id)
        assert {item.status for item in found} == {"inactive"}
        assert [item.name for item in found] == ["us_bank_payout", "us_bank_funding"]
        for item in found:
            kyc = [name for name in ("missing", "pending", "complete") if name == missing_kyc]
            assert [name for name in kyc if "kyc" in getattr(item, name)] == kyc
            waits = tuple(name for name in item.missing if name != "kyc")
            assert waits == ("activation", "bank_review")

    seen("missing")
    for status, group in (
        ("rejected", "missing"),
        ("pending", "pending"),
        ("approved", "complete"),
    ):
        world.resources.sandbox.decide_kyc(world.payer.id, status)  # type: ignore[arg-type]
        seen(group)


def test_accounts_are_listed_newest_first(world: World) -> None:
    for place in range(4):
        world.system.advance(1)
        world.account(f"user-{place}")
    page = world.resources.accounts.list(limit=4)
    names = [item.account.external_user_id for item in page.records]
    assert names == ["user-3", "user-2", "user-1", "user-0"]
    rest = world.resources.accounts.list(limit=4, after=page.next)
    assert {item.account.external_user_id for item in rest.records} == {"merchant", "payer"}
    assert not world.resources.accounts.list(external_user_id="nobody").records


def test_a_creation_is_repeated_by_its_key_alone(world: World) -> None:
    from payments_core.accounts.operations import NewAccount

    new = NewAccount(external_user_id="user-9", subject_type="individual")
    world.resources.accounts.create(new, idempotency_key=once("k"))
    with pytest.raises(AlreadyResponded):
        world.resources.accounts.create(new, idempotency_key=once("k"))
    with pytest.raises(ResourceConflict):
        world.resources.accounts.create(new, idempotency_key=once("other"))
    with pytest.raises(ResourceConflict):
        world.resources.accounts.create(new)


def test_balances_count_what_is_final_less_what_is_reserved(world: World) -> None:
    holdings = world.resources.accounts.read_balances(world.payer.id)
    assert {holding.asset.id for holding in holdings} == {
        "1/USDC", "1/USDT", "8453/USDC", "137/USDC", "42161/USDC", "10/USDC",
    }  # fmt: skip
    assert world.held() == (atomic("100"), 0, atomic("100"))
    world.authorized("30.00")
    assert world.held() == (atomic("100"), atomic("30"), atomic("70"))
    world.run()  # in a block, and not final
    assert world.held() == (atomic("100"), atomic("30"), atomic("70"))
    world.finish()
    assert world.held() == (atomic("70"), 0, atomic("70"))


def test_between_finality_and_its_discovery_nothing_is_counted_twice(world: World) -> None:
    world.authorized("30.00")
    world.run()
    world.chain.mine(10)  # final on the chain, and the worker has not looked
    assert world.held() == (atomic("70"), atomic("30"), atomic("40"))
    world.finish()
    assert world.held() == (atomic("70"), 0, atomic("70"))


def test_the_available_balance_never_shows_below_zero(world: World) -> None:
    world.authorized("80.00")
    world.drain()
    world.chain.mine(4)
    assert world.held() == (0, atomic("80"), 0)
