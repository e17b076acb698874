"""Payments on the example's chain, over HTTP, by a configuration as `payments serve` reads it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
from click.testing import CliRunner

from examples.custom_chain.adapter import LedgerChain
from examples.custom_chain.node import CHAIN_ID, STRANGER, Ledger
from payments_core.chains.evm.signers import LocalSigner
from payments_core.chains.loader import open_chain
from payments_core.clock import FixedClock
from payments_core.credentials.keyring import KeyRing
from payments_core.service import PaymentsService
from payments_core_http import create_app
from payments_core_http.cli import payments
from payments_core_http.client import Client
from payments_core_http.deployment import build
from payments_core_http.deployment.loader import ConfigurationRefused, load_configuration
from tests.deployment.installed import install
from tests.http.dashboard.operator_browser import CHEAP, Forms
from tests.http.pages.html import Html

USDC = "0x2222222222222222222222222222222222222222"
URL = "https://pay.example"
SETTINGS = """
mode = "sandbox"
public_url = "https://pay.example"

[keys]
ring_file = "{folder}/key-ring"

[storage]
url = "{storage}"

[limiter]
url = "memory:"

[providers.signer]
url = "file://{folder}/operator.key"

[chains.77]
urls = ["ledger+file://{folder}/ledger.db"]

[networks.77]
name = "Ledger"
rpc_url = "https://node.example"
explorer_url = "https://explorer.example"
is_testnet = true
block_ms = 1000
acceptance = [{{ up_to = "50.00", depth = 1 }}, {{ depth = 3 }}]
[[networks.77.tokens]]
symbol = "USDC"
address = "0x2222222222222222222222222222222222222222"
decimals = 6
"""
SOURCE = "from examples.custom_chain.adapter import open_chain"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A deployment's folder, and the adapter installed beside it."""
    install(tmp_path, monkeypatch, SOURCE, {"chains:ledger": "open_chain"})
    LocalSigner.open(tmp_path / "operator.key")
    ring = tmp_path / "key-ring"
    ring.write_text(KeyRing.generate())
    ring.chmod(0o600)
    configure(tmp_path)
    return tmp_path


def configure(folder: Path, storage: str = "memory:", **changes: str) -> Path:
    path = folder / "payments.toml"
    text = SETTINGS.format(folder=folder, storage=storage)
    for before, after in changes.items():
        text = text.replace(before, after)
    path.write_text(text)
    path.chmod(0o600)
    return path


class Shop:
    """A partner, a payer with a browser, and the chain's node."""

    def __init__(self, folder: Path) -> None:
        self.clock = FixedClock()
        self.node = Ledger(folder / "ledger.db", self.clock)
        self.node.create()
        configuration = load_configuration(folder / "payments.toml", {})
        storage = build.build_storage(configuration)
        storage.migrate()
        ring = build.build_key_ring(configuration)
        self.service: PaymentsService = build.build_service(
            configuration, storage, ring, clock=self.clock
        )
        build.require_matching_chains(self.service)
        app = self.service.tenants.create_app("Shop", "shop")
        self.environment_id = app.environments["sandbox"]
        _, secret = self.service.tenants.create_key(self.environment_id, "standard", "main")
        transport = httpx2.WSGITransport(app=create_app(self.service, mode="sandbox"))
        self.browser = httpx2.Client(transport=transport, base_url=URL)
        self.client = Client(URL, app.id, secret, transport=transport)
        self.worker = self.service.worker("sandbox")
        self.merchant = self.client.accounts.create(
            external_user_id="merchant", subject_type="business"
        )

    def create(self, amount: str) -> Any:
        return self.client.payments.receive(
            amount=amount,
            chain_id=CHAIN_ID,
            asset_symbol="USDC",
            destination={"type": "account", "accountId": self.merchant.id},
        )

    def look(self, payment: Any) -> Html:
        """The checkout page, as its link opens it."""
        seen = self.browser.get(payment.payment_url)
        assert seen.status_code == 200, seen.text
        return Html(seen.content)

    def pay(self, payment: Any, amount_atomic: int) -> str:
        """The payer sends what the page asks for, to the address that it shows."""
        page = self.look(payment).text
        assert "Ledger" in page and USDC in page
        assert payment.escrow.address in page
        return self.node.pay(USDC, payment.escrow.address, amount_atomic)

    def run(self, blocks: int = 0) -> None:
        self.node.mine(blocks)
        self.clock.advance(60)
        self.worker.run_until_idle()

    def status(self, payment: Any) -> str:
        return str(self.client.payments.read(payment.id).status)

    def held(self) -> str:
        found = self.client.accounts.read_balances(self.merchant.id).balances
        return next(one.available for one in found if one.chain_id == CHAIN_ID)


@pytest.fixture
def shop(folder: Path) -> Iterator[Shop]:
    opened = Shop(folder)
    yield opened
    opened.service.close()


def test_a_payment_is_paid_through_the_checkout_page(shop: Shop) -> None:
    payment = shop.create("60.00")
    assert shop.look(payment).stage == "waiting"
    shop.pay(payment, 60_000_000)
    shop.run()
    assert shop.status(payment) == "processing"
    assert shop.look(payment).stage == "processing"
    shop.run(blocks=3)  # final: accepted, and its release is sent
    assert shop.status(payment) == "executing"
    shop.run(blocks=4)
    assert shop.status(payment) == "succeeded"
    assert shop.look(payment).stage == "paid"
    assert shop.held() == "60.00"


def test_a_refund_goes_back_to_the_payer(shop: Shop) -> None:
    payment = shop.create("60.00")
    shop.pay(payment, 60_000_000)
    for _ in range(3):
        shop.run(blocks=4)
    assert shop.status(payment) == "succeeded"
    before = shop.node.balance(USDC, STRANGER, shop.node.height())
    refund = shop.client.payments.refund(payment.id, amount="20.00")
    for _ in range(3):
        shop.run(blocks=4)
    [done] = shop.client.payments.list_refunds(payment.id)
    assert (done.id, done.status) == (refund.id, "succeeded")
    assert shop.node.balance(USDC, STRANGER, shop.node.height()) == before + 20_000_000
    assert shop.held() == "40.00"


def test_a_transfer_that_a_reorg_removes_is_asked_for_again(shop: Shop) -> None:
    payment = shop.create("60.00")
    hash = shop.pay(payment, 60_000_000)
    shop.run()
    assert shop.look(payment).stage == "processing"
    shop.node.reorg(1)
    shop.run()
    assert shop.node.find(hash) is None
    assert shop.look(payment).stage == "waiting"
    shop.pay(payment, 60_000_000)
    for _ in range(3):
        shop.run(blocks=4)
    assert shop.status(payment) == "succeeded"
    assert shop.held() == "60.00"


def test_a_small_payment_is_released_early_and_undone_with_its_transfer(shop: Shop) -> None:
    payment = shop.create("25.00")
    shop.pay(payment, 25_000_000)
    shop.run(blocks=1)  # one block on top, as the network's first row asks for
    assert shop.status(payment) == "executing"
    shop.run(blocks=1)  # the release is in a block, and not final
    vault = next(v for v in shop.merchant.vaults if v.chain_id == CHAIN_ID).address
    assert shop.node.balance(USDC, vault, shop.node.height()) == 25_000_000
    shop.node.reorg(3)
    for _ in range(4):
        shop.run(blocks=1)
    holders = (vault, payment.escrow.address)
    assert [shop.node.balance(USDC, it, shop.node.height()) for it in holders] == [0, 0]
    read = shop.client.payments.read(payment.id)
    assert "reorged" in read.reconciliation.labels
    assert shop.held() == "0.00"


def test_the_dashboard_shows_the_network(shop: Shop) -> None:
    shop.service.parts.operators._cost = CHEAP
    made = shop.service.operators.create(shop.environment_id, "olivia")
    fields = Forms(shop.browser.get(login := "/dashboard/login").content, login).by_action[
        "/dashboard/login"
    ]
    given = {**fields, "username": "olivia", "password": made.password}
    assert shop.browser.post("/dashboard/login", data=given).status_code == 303
    payment = shop.create("60.00")
    shop.pay(payment, 60_000_000)
    shop.run()
    page = Html(shop.browser.get(f"/dashboard/payments/{payment.id}").content).text
    assert "Ledger" in page
    assert "60.00 USDC" in page


# Commands of an operator.


def run_command(folder: Path, *arguments: str) -> tuple[int, str]:
    command = [*arguments, "--config", str(folder / "payments.toml")]
    done = CliRunner().invoke(payments, command, catch_exceptions=False)
    return done.exit_code, done.output


def test_networks_lists_it(folder: Path) -> None:
    code, said = run_command(folder, "networks")
    assert code == 0
    assert "77  Ledger (1 node, testnet)" in said
    assert "up to 50.00: 1 block on top, about 1 s" in said
    assert "any amount: 3 blocks on top, about 3 s" in said


def test_the_check_of_the_network_says_what_it_found(folder: Path) -> None:
    code, said = run_command(folder, "networks", "check", "77")
    assert code == 1
    assert "chain 77: does not answer: unable to open database file" in said
    Ledger(folder / "ledger.db").create()
    code, said = run_command(folder, "networks", "check", "77")
    assert (code, said) == (0, "   ok  chain 77: latest block 0, final block 0 behind it\n")


def test_doctor_finds_it_sound(folder: Path) -> None:
    Ledger(folder / "ledger.db").create()
    configure(folder, storage=f"sqlite:///{folder}/payments.db")
    run_command(folder, "admin", "migrate")
    run_command(folder, "admin", "apps", "create", "Shop", "--partner-id", "shop")
    code, said = run_command(folder, "doctor")
    assert code == 0, said
    assert "chain 77: latest block 0" in said


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("{ depth = 3 }", '{ tag = "finalized" }', "cannot be used: the nodes of this chain have"),
        ("ledger+file", "tape+file", "no chain adapter for 'tape'; installed: aptos, evm, ledger,"),
    ],
)
def test_what_the_adapter_cannot_do_is_said_at_the_start(
    folder: Path, before: str, after: str, said: str
) -> None:
    configuration = load_configuration(configure(folder, **{before: after}), {})
    with pytest.raises(ConfigurationRefused, match=r"chains\.77") as refused:
        build.build_chains(configuration)
    assert said in str(refused.value)


def test_an_adapter_with_addresses_of_a_type_that_is_only_read_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LedgerChain, "chain_type", "solana")
    configuration = load_configuration(folder / "payments.toml", {})
    storage = build.build_storage(configuration)
    with pytest.raises(ConfigurationRefused, match="type solana, which is only read"):
        build.build_service(configuration, storage, build.build_key_ring(configuration))


def test_an_adapter_of_another_chain_is_not_opened(folder: Path) -> None:
    configuration = load_configuration(folder / "payments.toml", {})
    network = build.build_networks(configuration)[CHAIN_ID]
    signer = LocalSigner.open(folder / "operator.key")
    with pytest.raises(ValueError, match="'ledger' opens chain 77, not 78"):
        open_chain(78, [f"ledger+file://{folder}/ledger.db"], signer=signer, network=network)


def test_doctor_names_every_fault_of_a_network(folder: Path) -> None:
    storage = f"sqlite:///{folder}/payments.db"
    configure(folder, storage)
    run_command(folder, "admin", "migrate")
    configure(folder, storage, **{"https://node": "ftp://node", "https://explorer": "ftp://e"})
    code, said = run_command(folder, "doctor")
    assert code == 1
    assert "settings: networks.77.rpc_url must be" in said
    assert "settings: networks.77.explorer_url must be" in said
