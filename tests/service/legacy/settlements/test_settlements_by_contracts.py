"""Settlements that a contract wallet signs, or the key at its address."""

from __future__ import annotations

import contextlib
from typing import Any

import attrs
import pytest

from payments_core.accounts.erc1271 import MAX_CHECK_MS
from payments_core.accounts.record import Wallet
from payments_core.chains.port import Chain, ChainUnavailable, UnsupportedByChain
from payments_core.errors import (
    DependencyFailed,
    ValidationFailed,
)
from payments_core.service import PaymentsService
from tests.service.faults import (
    FaultyChain,
)
from tests.service.legacy.settlements.till import POLYGON, SIGNER, Till
from tests.service.world import BASE, write
from tests.signers import EvmWallet


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
        asked = service.acting_as(till.world.server).wallets.create_challenge(
            account.id, CONTRACT, "evm", chain_id=chain_id
        )
        service.acting_as(till.world.server).wallets.add(account.id, asked.id, "0x0102")
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
    [linked] = world.resources.accounts.read(world.payer.id).wallets
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
    asked = service.acting_as(world.server).wallets.create_challenge(
        world.payer.id, SIGNER.address, "evm"
    )
    service.acting_as(world.server).wallets.add(world.payer.id, asked.id, "0x0102")
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
