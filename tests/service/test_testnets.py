"""Testnets in a sandbox, beside simulated chains or instead of them.

The testnet is a simulated chain of another storage, which the service does not control.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import pytest

from payments_core import (
    KeyRing,
    NewAccount,
    NewPayment,
    PaymentsService,
    ToAccount,
    open_storage,
)
from payments_core.chains.port import ChainUnavailable
from payments_core.chains.simulated.chain import SimulatedChain
from payments_core.clock import SECOND, FixedClock
from payments_core.errors import (
    CapabilityNotActive,
    DependencyFailed,
    NotFound,
    PaymentsError,
    ValidationFailed,
)
from payments_core.networks import shipped_networks
from payments_core.payments.record import Payment
from payments_core.resources import Resources
from payments_core.sandbox.clock import SandboxClock
from payments_core.storage.port import Storage
from tests.service.world import REACHED

TESTNET = 84532
BASE = 8453
WALLET = "0x7476609c9e396ea1ecAFDfaf204457d0B83a338f"


def open_memory() -> Storage:
    storage = open_storage("memory:")
    storage.migrate()
    return storage


class Rehearsal:
    """A sandbox that serves Base Sepolia, and what others do on that network."""

    def __init__(self, *, simulated_chains: bool) -> None:
        self.clock = FixedClock()
        self.ring = KeyRing.parse(KeyRing.generate())
        public = PaymentsService(open_memory(), self.ring, clock=self.clock)
        self.testnet = SimulatedChain(TESTNET, public.parts.ports)
        self.service = PaymentsService(
            open_memory(),
            self.ring,
            chains={TESTNET: self.testnet},
            simulated_chains=simulated_chains,
            settings=REACHED,
            clock=self.clock,
        )
        app = self.service.tenants.create_app("Shop", "shop")
        self.shop: Resources = self.service.environment(app.environments["sandbox"])
        new = NewAccount(external_user_id="eve", subject_type="individual")
        self.eve = self.shop.accounts.create(new)

    def receive(self, chain_id: int) -> Payment:
        to = ToAccount(account_id=self.eve.account.id)
        new = NewPayment(amount="5.00", chain_id=chain_id, destination=to)
        return self.shop.payments.receive(new).payment

    def pass_time(self, seconds: int) -> None:
        for _ in range(seconds):
            self.clock.advance(1)
            self.shop.sandbox.run()

    def status_of(self, payment: Payment) -> str:
        return self.shop.payments.read(payment.id).payment.status


@pytest.fixture
def both() -> Rehearsal:
    return Rehearsal(simulated_chains=True)


@pytest.fixture
def alone() -> Rehearsal:
    return Rehearsal(simulated_chains=False)


def test_a_sandbox_says_which_of_its_chains_are_testnets(both: Rehearsal) -> None:
    service = both.service
    kinds = {number: service.find_network_kind(number) for number in both.shop.sandbox.read().heads}
    mainnets = [number for number, one in shipped_networks().items() if not one.is_testnet]
    assert kinds == {**dict.fromkeys(mainnets, "simulated"), TESTNET: "testnet"}
    assert service.find_network_kind(80002) == "simulated", "nobody serves it"
    assert repr(service) == "<PaymentsService: chains simulated, 84532>"
    assert {vault.chain_id for vault in both.eve.vaults} == {*mainnets, TESTNET}


def test_a_sandbox_of_testnets_alone_has_a_state(alone: Rehearsal) -> None:
    assert list(alone.shop.sandbox.read().heads) == [TESTNET]
    assert alone.service.find_network_kind(TESTNET) == "testnet"
    assert repr(alone.service) == "<PaymentsService: chains 84532>"


def test_payments_are_paid_on_a_testnet_and_on_a_simulated_chain(both: Rehearsal) -> None:
    rehearsed, simulated = both.receive(TESTNET), both.receive(BASE)
    token = both.service.networks.find_asset(TESTNET, "USDC").address
    to = str(rehearsed.escrow_address)
    both.testnet.transfer(token, None, to, rehearsed.amount_atomic, "a payer's")
    both.shop.sandbox.transfer(BASE, "USDC", "5.00", to=str(simulated.escrow_address))
    both.pass_time(30)
    assert both.status_of(rehearsed) == both.status_of(simulated) == "succeeded"


CONTROLS: dict[str, Callable[[Rehearsal], Any]] = {
    "fund": lambda one: one.shop.sandbox.fund(one.eve.account.id, TESTNET, "USDC", "1"),
    "transfer": lambda one: one.shop.sandbox.transfer(TESTNET, "USDC", "1", to=WALLET),
    "blocks": lambda one: one.shop.sandbox.mine_blocks(TESTNET, 1),
    "reorg": lambda one: one.shop.sandbox.reorg_chain(TESTNET, 1),
    "failure": lambda one: one.shop.sandbox.fail_dependency(
        "chain", "transfer", 1, chain_id=TESTNET
    ),
    "clock": lambda one: one.shop.sandbox.advance_clock(60),
}


@pytest.mark.parametrize("control", CONTROLS)
@pytest.mark.parametrize("simulated_chains", [True, False])
def test_nobody_controls_a_testnet(control: str, simulated_chains: bool) -> None:
    rehearsal = Rehearsal(simulated_chains=simulated_chains)
    with pytest.raises(CapabilityNotActive) as refused:
        CONTROLS[control](rehearsal)
    named = "the sandbox's control of Base Sepolia"
    if control == "clock":
        named = "moving the clock beside a testnet"
    assert refused.value.capability == named


def test_failures_of_chains_are_refused_where_all_are_testnets(
    alone: Rehearsal, both: Rehearsal
) -> None:
    with pytest.raises(CapabilityNotActive, match="fault injection on a real chain"):
        alone.shop.sandbox.fail_dependency("chain", "transfer", 1)
    assert both.shop.sandbox.fail_dependency("chain", "transfer", 1).chain_id is None


def test_a_sandboxs_clock_of_a_program_is_not_moved_beside_a_testnet(both: Rehearsal) -> None:
    storage = open_memory()
    service = PaymentsService(
        storage, both.ring, chains={TESTNET: both.testnet}, clock=SandboxClock(storage, both.clock)
    )
    shop = service.environment(service.tenants.create_app("Shop", "shop").environments["sandbox"])
    with pytest.raises(CapabilityNotActive):
        shop.sandbox.advance_clock(60)


def test_a_testnet_whose_nodes_are_away_is_a_failed_dependency(both: Rehearsal) -> None:
    class Away(SimulatedChain):
        def heads(self) -> Any:
            raise ChainUnavailable("no node answers")

    away = Away(TESTNET, both.service.parts.ports)
    service = PaymentsService(open_memory(), both.ring, chains={TESTNET: away}, clock=both.clock)
    shop = service.environment(service.tenants.create_app("Shop", "shop").environments["sandbox"])
    with pytest.raises(DependencyFailed):
        shop.sandbox.read()


def test_the_panel_of_a_checkout_page_offers_what_the_sandbox_can_do(both: Rehearsal) -> None:
    player = both.service.sandbox_payer()
    for chain_id, actions in ((TESTNET, set()), (BASE, {"pay", "pay_short", "pay_over"})):
        payment = both.receive(chain_id)
        code = both.service.parts.links.build_url(payment).rpartition("/")[2]
        page = both.service.checkout.read_page(code, mode="sandbox")
        assert set(player.list_actions(page)) - {"pay_twice"} == actions
        for action in ("mine", "pay") if chain_id == TESTNET else ("mine",):
            with pytest.raises(PaymentsError, match=action):
                player.play(code, action, mode="sandbox")


def test_real_money_is_not_beside_simulated_chains(both: Rehearsal) -> None:
    chains = {BASE: SimulatedChain(BASE, both.service.parts.ports)}
    ring = both.ring
    with pytest.raises(ValidationFailed) as refused:
        PaymentsService(open_memory(), ring, chains=chains, simulated_chains=True)
    assert [fault.path for fault in refused.value.fields] == [f"chains[{BASE}]"]
    real = PaymentsService(open_memory(), ring, chains={**chains, TESTNET: both.testnet})
    assert (real.find_network_kind(BASE), real.find_network_kind(TESTNET)) == ("real", "testnet")
    shop = real.environment(real.tenants.create_app("Shop", "shop").environments["sandbox"])
    with pytest.raises(NotFound):
        shop.sandbox.read()


def test_a_storage_whose_time_was_moved_serves_no_testnet(both: Rehearsal) -> None:
    storage = open_memory()
    SandboxClock(storage).advance_to(SandboxClock(storage).now() + 90 * SECOND)
    service = PaymentsService(storage, both.ring, chains={TESTNET: both.testnet})
    with pytest.raises(ValueError, match=r"was advanced by (89|90) s, which real chains do not"):
        service.require_mode("sandbox")
    mainnet = {BASE: SimulatedChain(BASE, both.service.parts.ports)}
    PaymentsService(storage, both.ring, chains=mainnet).require_mode("production")


class TestExplorers:
    """Pages link what a public network has; a sandbox's own chain is on none."""

    def test_only_public_networks_have_one(self, both: Rehearsal) -> None:
        found = both.service.choose_explorer(TESTNET)
        assert found.link_transaction("0xab") == "https://sepolia.basescan.org/tx/0xab"
        assert found.link_address(WALLET) == f"https://sepolia.basescan.org/address/{WALLET}"
        assert both.service.choose_explorer(BASE).link_address(WALLET) is None

    @pytest.mark.parametrize(
        ("explorer_url", "link"),
        [
            ("https://scan.example/base/", "https://scan.example/base/tx/0xab"),
            ("https://scan.example", "https://scan.example/tx/0xab"),
            (None, None),
        ],
    )
    def test_a_network_says_where_its_own_is(
        self, both: Rehearsal, explorer_url: str | None, link: str | None
    ) -> None:
        own = attrs.evolve(shipped_networks()[TESTNET], explorer_url=explorer_url)
        service = PaymentsService(
            open_memory(),
            both.ring,
            chains={TESTNET: both.testnet},
            networks=shipped_networks().merge(own),
        )
        assert service.choose_explorer(TESTNET).link_transaction("0xab") == link
