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
from tests.service.legacy.settlements.settlement_harness import POLYGON, SIGNER, SettlementHarness
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
    memory_harness: SettlementHarness, here: Any, elsewhere: Any, error: type[Exception] | None
) -> None:
    harness = memory_harness
    nodes = {
        id: Node(chain, here if id == BASE else elsewhere)
        for id, chain in harness.service.chains.items()
    }
    quote = harness.quote()
    body = {**harness.body(quote), "signature": "0x0102"}
    service = harness.world.restarted(chains=nodes)
    with contextlib.nullcontext() if error is None else pytest.raises(error):
        harness.send(body, service)
    assert len(harness.settled()) == (error is None)


CONTRACT = "0xd8BC79b53BD5BE614dCD5Ee8e12A05f44eDFAd2B"


class Yes(Node):
    """A chain whose contract at that address accepts anything."""

    def check_contract_signature(self, address: str, *_: bytes) -> bool | None:
        return address == CONTRACT or None


def link_contract(harness: SettlementHarness, account: Any, *chain_ids: int) -> PaymentsService:
    """The account links that contract on these chains; a service over chains that all have it."""
    everywhere = {id: Yes(chain, None) for id, chain in harness.service.chains.items()}
    service = harness.world.restarted(chains=everywhere)
    for chain_id in chain_ids:
        asked = service.acting_as(harness.world.server).wallets.create_challenge(
            account.id, CONTRACT, "evm", chain_id=chain_id
        )
        service.acting_as(harness.world.server).wallets.add(account.id, asked.id, "0x0102")
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
    memory_harness: SettlementHarness, chain_ids: tuple[int, ...], error: type[Exception] | None
) -> None:
    harness = memory_harness
    service = link_contract(harness, harness.world.payer, *chain_ids)
    link_contract(harness, harness.world.merchant, 1)  # another account's, on another chain
    body = {**harness.body(harness.quote()), "signature": "0x0102"}
    with contextlib.nullcontext() if error is None else pytest.raises(error):
        harness.send(body, service)
    assert len(harness.settled()) == (error is None)


def proven_otherwise(harness: SettlementHarness, **proof: Any) -> Wallet:
    """The payer's wallet, with another proof than its key's."""
    world = harness.world
    [linked] = world.resources.accounts.read(world.payer.id).wallets
    changed = attrs.evolve(linked, key_proof=False, **proof)
    write(world.storage, world.environment_id, lambda tx: tx.replace(changed))
    return changed


def as_an_earlier_release_has_it(harness: SettlementHarness) -> Wallet:
    """The payer's wallet, of which no record says whether its key or a contract proved it."""
    return proven_otherwise(harness)


@pytest.mark.parametrize(("chain_id", "error"), [(BASE, None), (POLYGON, ValidationFailed)])
def test_the_key_at_a_contracts_address_signs_where_the_contract_has_proven_it(
    memory_harness: SettlementHarness, chain_id: int, error: type[Exception] | None
) -> None:
    """Others may control that contract (EIP-7702): its proof gives the key nothing elsewhere."""
    harness = memory_harness
    proven_otherwise(harness, contract_chains=(chain_id,))
    with contextlib.nullcontext() if error is None else pytest.raises(error):
        harness.settle(harness.quote())
    assert len(harness.settled()) == (error is None)


def test_a_contract_speaks_for_an_earlier_releases_wallet_once_it_is_linked_again(
    memory_harness: SettlementHarness,
) -> None:
    harness, world = memory_harness, memory_harness.world
    assert as_an_earlier_release_has_it(harness).is_verified_everywhere
    service = world.restarted(chains={BASE: Node(harness.service.chains[BASE], True)})
    body = {**harness.body(harness.quote()), "signature": "0x0102"}
    with pytest.raises(ValidationFailed):
        harness.send(body, service)
    asked = service.acting_as(world.server).wallets.create_challenge(
        world.payer.id, SIGNER.address, "evm"
    )
    service.acting_as(world.server).wallets.add(world.payer.id, asked.id, "0x0102")
    harness.send(body, service)
    assert len(harness.settled()) == 1


def test_the_key_of_an_earlier_releases_wallet_signs(memory_harness: SettlementHarness) -> None:
    harness = memory_harness
    as_an_earlier_release_has_it(harness)
    harness.settle(harness.quote())
    assert len(harness.settled()) == 1


def test_wallets_are_asked_for_so_long_and_no_longer(memory_harness: SettlementHarness) -> None:
    """A caller who knows a quote's id may bring any signature."""
    harness, asked = memory_harness, []

    class SlowNode(Node):
        def check_contract_signature(self, address: str, *_: bytes) -> bool | None:
            asked.append(address)
            harness.world.system.advance(MAX_CHECK_MS / 4_000)
            return None

    for number in range(50, 56):
        harness.link(EvmWallet(number))
    service = harness.world.restarted(chains={BASE: SlowNode(harness.world.chain, None)})
    with pytest.raises(DependencyFailed):
        harness.send({**harness.body(harness.quote()), "signature": "0x0102"}, service)
    assert len(asked) == 4


def test_a_chain_that_is_no_longer_served_settles_nothing(
    memory_harness: SettlementHarness,
) -> None:
    harness = memory_harness
    quote = harness.quote()
    service = harness.world.restarted(chains={POLYGON: harness.service.chains[POLYGON]})
    for signature in (harness.body(quote)["signature"], "0x0102"):
        with pytest.raises(DependencyFailed):
            harness.send({**harness.body(quote), "signature": signature}, service)
    assert harness.settled() == []
