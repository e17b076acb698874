"""Networks and tokens that a deployment adds, without code: in the library, on simulated chains."""

from __future__ import annotations

from typing import Any

import attrs
import pytest

from payments_core import (
    KeyRing,
    NewAccount,
    NewPayment,
    PaymentsService,
    Resources,
    ToAccount,
    open_storage,
)
from payments_core.chains.simulated.chain import SimulatedChain
from payments_core.chains.solana import SolanaChain
from payments_core.errors import UnsupportedAsset, UnsupportedChain, ValidationFailed
from payments_core.networks import Asset, Network, Networks, shipped_networks

OWN = Network(
    chain_id=77,
    name="Tape",
    tokens=(
        Asset(77, "TAPE", "0x" + "1" * 40, 18),
        Asset(77, "USDC", "0x" + "2" * 40, 6),
    ),
    watch_list=(Asset(77, "OLD", "0x" + "3" * 40, 8),),
    rpc_url="https://node.example",
    explorer_url="https://explorer.example",
)
EURC = Asset(8453, "EURC", "0x60a3E35Cc302bFA44Cb288Bc5a4F316Fdb1adb42", 6)


def with_eurc() -> Network:
    base = shipped_networks()[8453]
    return attrs.evolve(base, tokens=(*base.tokens, EURC))


class Reopened:
    """An environment that services with different registries open, one after the other."""

    def __init__(self) -> None:
        self.storage = open_storage("memory:")
        self.storage.migrate()
        self.ring = KeyRing.parse(KeyRing.generate())
        self.environment_id: str | None = None

    def open(self, networks: Networks | None = None) -> Resources:
        """The environment with these networks, or the shipped ones."""
        service = PaymentsService(self.storage, self.ring, networks=networks)
        if self.environment_id is None:
            app = service.tenants.create_app("Shop", "shop")
            self.environment_id = app.environments["sandbox"]
        return service.environment(self.environment_id)


def serve(networks: Networks, **more: Any) -> PaymentsService:
    storage = open_storage("memory:")
    storage.migrate()
    ring = KeyRing.parse(KeyRing.generate())
    return PaymentsService(storage, ring, networks=networks, **more)


@pytest.mark.parametrize(
    ("chain_id", "symbol", "amount", "atomic"),
    [(77, "TAPE", "1.000000000000000001", 10**18 + 1), (8453, "EURC", "2.50", 2_500_000)],
)
def test_a_payment_is_paid_in_an_added_token(
    chain_id: int, symbol: str, amount: str, atomic: int
) -> None:
    service = serve(shipped_networks().merge(OWN, with_eurc()))
    app = service.tenants.create_app("Shop", "shop")
    shop = service.environment(app.environments["sandbox"])
    eve = shop.accounts.create(NewAccount(external_user_id="eve", subject_type="individual"))
    assert {vault.chain_id for vault in eve.vaults} == {1, 8453, 137, 42161, 10, 77}
    new = NewPayment(
        amount=amount,
        chain_id=chain_id,
        asset_symbol=symbol,
        destination=ToAccount(account_id=eve.account.id),
    )
    payment = shop.payments.receive(new).payment
    assert payment.amount_atomic == atomic
    shop.sandbox.transfer(chain_id, symbol, amount, to=str(payment.escrow_address))
    shop.sandbox.advance_clock(60)
    paid = shop.payments.read(payment.id).payment
    assert (paid.status, paid.asset.symbol) == ("succeeded", symbol)
    held = {
        (one.asset.chain_id, one.asset.symbol): one.total_atomic
        for one in shop.accounts.read_balances(eve.account.id)
    }
    assert held[chain_id, symbol] == atomic


def test_a_stored_payment_keeps_its_token_when_the_registry_changes() -> None:
    reopened = Reopened()
    shop = reopened.open(shipped_networks().merge(OWN))
    eve = shop.accounts.create(NewAccount(external_user_id="eve", subject_type="individual"))
    to = ToAccount(account_id=eve.account.id)
    new = NewPayment(amount="3", chain_id=77, asset_symbol="TAPE", destination=to)
    payment = shop.payments.receive(new).payment
    later = reopened.open()  # it knows no chain 77
    assert later.payments.read(payment.id).payment.asset == OWN.tokens[0]
    with pytest.raises(UnsupportedChain):
        later.payments.receive(new)


def test_a_payment_is_paid_in_a_token_that_was_removed_meanwhile() -> None:
    """Its money would be in escrow, and no scan would see it: the Payment would expire."""
    reopened = Reopened()
    shop = reopened.open(shipped_networks().merge(with_eurc()))
    eve = shop.accounts.create(NewAccount(external_user_id="eve", subject_type="individual"))
    to = ToAccount(account_id=eve.account.id)
    payment = shop.payments.receive(
        NewPayment(amount="3", chain_id=8453, asset_symbol="EURC", destination=to)
    ).payment
    shop.sandbox.advance_clock(60)
    later = reopened.open()
    shop.sandbox.transfer(8453, "EURC", "3", to=str(payment.escrow_address))
    for _ in range(2):
        later.sandbox.advance_clock(60)
    assert later.payments.read(payment.id).payment.status == "succeeded"
    [receipt] = later.payments.list_receipts(payment.id).receipts.records
    assert (receipt.asset_symbol, receipt.decimals) == ("EURC", 6)


def test_a_deposit_keeps_its_token_when_the_registry_renames_it() -> None:
    """Nothing was undone: a partner must not hear of a reorg, nor see another amount."""
    reopened = Reopened()
    shop = reopened.open(shipped_networks().merge(with_eurc()))
    eve = shop.accounts.create(NewAccount(external_user_id="eve", subject_type="individual"))
    id = eve.account.id
    address = shop.deposits.issue_address(id, 8453).address
    shop.sandbox.transfer(8453, "EURC", "3", to=address.address)
    [found] = shop.deposits.check(id).deposits
    assert found.status == "detected"
    base = with_eurc()
    renamed = attrs.evolve(base, tokens=(base.tokens[0], attrs.evolve(EURC, symbol="EUR")))
    reopened.open(shipped_networks().merge(renamed)).sandbox.advance_clock(60)
    [kept] = shop.deposits.list(id).records
    assert (kept.status, kept.asset) == ("settled", found.asset)
    names = [event.name for event in shop.events.list().records]
    assert "deposit.failed" not in names


def test_a_registry_that_was_made_without_checks_is_checked() -> None:
    with pytest.raises(ValidationFailed, match=r"networks\.77\.acceptance"):
        serve(Networks([attrs.evolve(OWN, acceptance=())]))


def test_what_was_not_added_stays_unsupported() -> None:
    service = serve(shipped_networks().merge(OWN))
    shop = service.environment(service.tenants.create_app("Shop", "shop").environments["sandbox"])
    eve = shop.accounts.create(NewAccount(external_user_id="eve", subject_type="individual"))
    to = ToAccount(account_id=eve.account.id)
    with pytest.raises(UnsupportedAsset):
        shop.payments.receive(
            NewPayment(amount="1", chain_id=77, asset_symbol="OLD", destination=to)
        )
    assert 84532 not in service.networks  # a testnet that nobody serves


def test_a_served_testnet_is_known_and_serves_the_sandbox_only() -> None:
    ports = serve(shipped_networks()).parts.ports
    service = serve(shipped_networks(), chains={84532: SimulatedChain(84532, ports)})
    assert service.networks[84532].name == "Base Sepolia"
    assert 80002 not in service.networks
    service.require_mode("sandbox")
    with pytest.raises(ValueError, match="Base Sepolia"):
        service.require_mode("production")


def test_a_chain_that_no_network_describes_is_refused() -> None:
    ports = serve(shipped_networks()).parts.ports
    with pytest.raises(ValidationFailed) as refused:
        serve(shipped_networks(), chains={77: SimulatedChain(77, ports)})
    assert [fault.path for fault in refused.value.fields] == ["chains[77]"]
    serve(shipped_networks().merge(OWN), chains={77: SimulatedChain(77, ports)})


def test_networks_of_another_kind_are_refused() -> None:
    with pytest.raises(ValidationFailed, match="networks must be a Networks"):
        serve({77: OWN})  # type: ignore[arg-type]


def test_a_chain_under_the_number_of_another_is_refused() -> None:
    chain = SimulatedChain(8453, serve(shipped_networks()).parts.ports)
    with pytest.raises(ValidationFailed, match=r"chains\[1\] is chain 8453"):
        serve(shipped_networks(), chains={1: chain})


def test_a_chain_without_a_method_of_the_port_is_refused() -> None:
    chain: Any = type("Half", (), {"chain_id": 8453})()
    with pytest.raises(ValidationFailed, match=r"chains\[8453\] must be a Chain: it has no .*scan"):
        serve(shipped_networks(), chains={8453: chain})


def test_a_chain_that_is_only_read_is_not_registered() -> None:
    """Every account would get a vault on it, which it cannot have."""
    chain = SolanaChain("https://node.example", chain_id=77)
    usdc = Asset(77, "USDC", "EPjFWdd5AufqSSqeM2qN1xzybapC8G4wEGGkZwyTDt1v", 6)
    network = attrs.evolve(OWN, chain_type="solana", tokens=(usdc,), watch_list=())
    serve(shipped_networks(), chains={77: chain})
    with pytest.raises(ValidationFailed, match="is of type solana, which is only read"):
        serve(shipped_networks().merge(network), chains={77: chain})
