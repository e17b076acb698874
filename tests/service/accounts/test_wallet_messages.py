"""Wallets that are linked by a message of the caller's own, as the legacy interface does."""

from __future__ import annotations

from typing import Any

import attrs
import pytest
from nacl.signing import SigningKey

from payments_core.accounts.record import SignedMessage
from payments_core.accounts.wallet_signatures import MessageSignature, aptos_message
from payments_core.chains.signatures import ORDER
from payments_core.errors import (
    AccountSuspended,
    ActionAlreadyUsed,
    NotFound,
    ResourceConflict,
    ValidationFailed,
)
from tests.service.payments.test_concurrency import at_once, kinds
from tests.service.world import World
from tests.signers import AptosWallet, EvmWallet, Signer, SolanaWallet, base58

TEXT = "Link this wallet to my account."
SIGNERS = (EvmWallet(5), SolanaWallet(5), AptosWallet(5))
every_signer = pytest.mark.parametrize("signer", SIGNERS, ids=lambda signer: signer.chain_type)


def signed(signer: Signer, text: str = TEXT) -> MessageSignature:
    message = aptos_message(text, "7") if signer.chain_type == "aptos" else text
    return MessageSignature(
        chain_type=signer.chain_type,
        address=signer.address,
        message=message,
        signature=signer.sign(text, "7"),
        public_key=signer.public_key,
    )


def add(world: World, given: MessageSignature, account_id: str | None = None) -> Any:
    return world.resources.wallets.add_by_message(account_id or world.payer.id, given)


def used(world: World) -> int:
    """How many messages have been used."""
    storage, partition = world.service.parts.ports.storage, world.server.partition
    ids = [signed(signer).message_id for signer in SIGNERS]
    found = storage.read(partition, lambda tx: [tx.get(SignedMessage, id) for id in ids])
    return sum(one is not None for one in found)


@every_signer
def test_the_wallet_that_signed_is_linked_and_verified(world: World, signer: Signer) -> None:
    details = add(world, signed(signer))
    assert [(it.address, it.verified) for it in details.wallets] == [(signer.address, True)]
    read = world.resources.accounts.read(world.payer.id)
    assert [wallet.id for wallet in read.wallets] == [wallet.id for wallet in details.wallets]
    assert read.account.wallet_count == 1
    assert used(world) == 1


@every_signer
@pytest.mark.parametrize("place", [4, 40, 80])
def test_one_changed_letter_proves_nothing(world: World, signer: Signer, place: int) -> None:
    given = signed(signer)
    letter = given.signature[place]
    other = "2" if letter != "2" else "3"
    changed = given.signature[:place] + other + given.signature[place + 1 :]
    with pytest.raises(ValidationFailed):
        add(world, attrs.evolve(given, signature=changed))
    with pytest.raises(ValidationFailed):
        add(world, attrs.evolve(given, message=given.message + " "))
    assert used(world) == 0


@every_signer
def test_another_address_or_chain_type_proves_nothing(world: World, signer: Signer) -> None:
    given = signed(signer)
    other = type(signer)(6)
    key = other.public_key
    with pytest.raises(ValidationFailed):
        add(world, attrs.evolve(given, address=other.address, public_key=key))
    for foreign in SIGNERS:
        if foreign.chain_type != signer.chain_type:
            moved = attrs.evolve(given, chain_type=foreign.chain_type, address=foreign.address)
            with pytest.raises(ValidationFailed):
                add(world, moved)


def test_a_high_s_proves_nothing(world: World) -> None:
    given = signed(EvmWallet(5))
    raw = bytes.fromhex(given.signature[2:])
    high = ORDER - int.from_bytes(raw[32:64], "big")
    twin = raw[:32] + high.to_bytes(32, "big") + bytes([55 - raw[64]])
    with pytest.raises(ValidationFailed, match="low s"):
        add(world, attrs.evolve(given, signature="0x" + twin.hex()))


@every_signer
def test_a_signature_works_once_for_whichever_account(world: World, signer: Signer) -> None:
    [wallet] = add(world, signed(signer)).wallets
    world.resources.wallets.remove(world.payer.id, wallet.id)
    for account_id in (world.payer.id, world.merchant.id):
        with pytest.raises(ActionAlreadyUsed):
            add(world, signed(signer), account_id)
    assert add(world, signed(signer, "Again."), world.merchant.id).wallets[0].verified


def test_two_at_once_link_one_wallet(world: World) -> None:
    given = signed(EvmWallet(5))
    results = at_once([lambda: add(world, given), lambda: add(world, given, world.merchant.id)])
    # The second sees the used message first, or the linked wallet.
    assert kinds(results) in (
        {"AccountDetails": 1, "ActionAlreadyUsed": 1},
        {"AccountDetails": 1, "ResourceConflict": 1},
    )


def test_a_listed_wallet_becomes_verified(world: World) -> None:
    from payments_core.accounts.new_wallets import NewWallet

    signer = EvmWallet(5)
    made = world.account(
        "user-9", wallets=[NewWallet(address=signer.address, chain_type="evm", label="main")]
    )
    [wallet] = add(world, signed(signer), made.id).wallets
    assert (wallet.label, wallet.verified) == ("main", True)
    with pytest.raises(ResourceConflict):
        add(world, signed(signer, "Another."), world.payer.id)


def test_solanas_envelope_of_off_chain_messages_counts(world: World) -> None:
    key = SigningKey(b"\7" * 32)
    address = base58(bytes(key.verify_key))
    for text, number in ((TEXT, 0), ("Für mich.", 1), ("x" * 1_300, 2)):
        message = text.encode()
        envelope = b"\xffsolana offchain" + bytes([0, number])
        envelope += len(message).to_bytes(2, "little") + message
        signature = base58(key.sign(envelope).signature)
        given = MessageSignature(
            chain_type="solana", address=address, message=text, signature=signature
        )
        assert add(world, given).wallets[0].verified
        wrong = base58(key.sign(envelope.replace(b"\xff", b"\xfe")).signature)
        with pytest.raises(ValidationFailed):
            add(world, attrs.evolve(given, message=text + ".", signature=wrong))


def test_only_an_active_account_gets_a_wallet(world: World) -> None:
    with pytest.raises(NotFound):
        add(world, signed(EvmWallet(5)), "acct_" + "A" * 24)
    world.resources.accounts.change(world.payer.id, status="suspended")
    with pytest.raises(AccountSuspended):
        add(world, signed(EvmWallet(5)))
    assert used(world) == 0
