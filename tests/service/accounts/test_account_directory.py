"""Accounts by username, payment address and wallet address; and what any address holds."""

from __future__ import annotations

import attrs
import pytest

from payments_core.accounts.new_wallets import NewWallet
from payments_core.accounts.operations import NewAccount
from payments_core.addresses import identify_chain_type
from payments_core.errors import (
    CapabilityNotActive,
    NotFound,
    UnsupportedAsset,
    ValidationFailed,
)
from tests.service.world import World
from tests.signers import EvmWallet

SOLANA = "EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v"
EVM = "0x8ba1f109551bD432803012645Ac136ddd64DBA72"


def test_a_name_is_found_whatever_its_case(world: World) -> None:
    made = world.account("user-9", username="Nine_9")
    find = world.resources.accounts
    assert find.find_by_handle("nINE_9").account.id == made.id
    assert find.find_by_payment_address("nine_9@acme").account.id == made.id


@pytest.mark.parametrize("address", ["nobody@acme", "nine_9@another", "nine_9@@acme"])
def test_a_payment_address_of_nobody_is_not_found(world: World, address: str) -> None:
    world.account("user-9", username="nine_9")
    with pytest.raises(NotFound):
        world.resources.accounts.find_by_payment_address(address)


@pytest.mark.parametrize("address", ["nine_9", "@acme", "nine_9@", "@"])
def test_what_is_not_a_payment_address_is_refused(world: World, address: str) -> None:
    with pytest.raises(ValidationFailed):
        world.resources.accounts.find_by_payment_address(address)


def test_a_name_is_free_until_somebody_has_it(world: World) -> None:
    assert world.resources.accounts.is_handle_free("Nine_9")
    world.account("user-9", username="nine_9")
    assert not world.resources.accounts.is_handle_free("Nine_9")
    assert not world.resources.accounts.is_handle_free("Support")
    with pytest.raises(ValidationFailed):
        world.resources.accounts.is_handle_free("a b")


@pytest.mark.parametrize(
    ("address", "chain_type"),
    [(EVM.lower(), "evm"), (SOLANA, "solana"), ("0x1", "aptos"), ("0x" + "ab" * 32, "aptos")],
)
def test_the_form_of_an_address_shows_its_chain_type(address: str, chain_type: str) -> None:
    assert identify_chain_type(address) == chain_type


def test_an_address_finds_the_account_that_listed_it_first(world: World) -> None:
    listed = [NewWallet(address=EVM, chain_type="evm")]
    first = world.account("user-9", wallets=listed)
    world.system.advance(1)
    world.account("user-10", wallets=listed)
    found = world.resources.accounts.find_by_wallet(EVM.lower())
    assert found.account.id == first.id
    with pytest.raises(NotFound):
        world.resources.accounts.find_by_wallet(SOLANA)
    with pytest.raises(ValidationFailed):
        world.resources.accounts.find_by_wallet("nowhere")


def test_an_address_finds_the_account_that_has_proven_it(world: World) -> None:
    wallet, wallets = EvmWallet(5), world.resources.wallets
    world.account("user-9", wallets=[NewWallet(address=wallet.address, chain_type="evm")])
    world.system.advance(1)
    second = world.account("user-10")
    challenge = wallets.create_challenge(second.id, wallet.address, "evm")
    wallets.add(second.id, challenge.id, wallet.sign(challenge.message))
    found = world.resources.accounts.find_by_wallet(wallet.address)
    assert found.account.id == second.id


def test_an_account_without_an_id_of_the_partners_has_its_own_there(world: World) -> None:
    made = world.resources.accounts.create(NewAccount(subject_type="individual"))
    assert made.account.external_user_id == made.account.id


def test_half_a_preference_leaves_the_other_half(world: World) -> None:
    id = world.payer.id
    reported = [
        attrs.astuple(details.account.settlement)
        for details in (
            world.resources.accounts.adjust_settlement(id, asset_symbol="USDC"),
            world.resources.accounts.adjust_settlement(id, chain_id=1),
            world.resources.accounts.adjust_settlement(id, asset_symbol="USDT"),
        )
        if details.account.settlement is not None
    ]
    assert reported == [(8453, "USDC"), (1, "USDC"), (1, "USDT")]
    with pytest.raises(UnsupportedAsset):
        world.resources.accounts.adjust_settlement(id, chain_id=10)


def test_what_no_chain_serves_cannot_be_read(world: World) -> None:
    with pytest.raises(CapabilityNotActive):
        world.resources.legacy.read_balance("solana", SOLANA)
