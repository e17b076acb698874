"""A chain that nobody ships, and a token of its own, by `[networks.N]` alone, on a real node."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import attrs
import pytest
from click.testing import CliRunner

from payments_core import NewAccount, NewPayment, ToAccount
from payments_core.chains.evm import abi as calls
from payments_core.chains.evm.addresses import DEPLOYER, Deployment
from payments_core.chains.evm.artifacts import load_contract
from payments_core.chains.evm.signers import LocalSigner
from payments_core.clock import SECOND, FixedClock, SystemClock
from payments_core.credentials.keyring import KeyRing
from payments_core_http.cli import payments
from payments_core_http.deployment import build
from payments_core_http.deployment.loader import ConfigurationRefused, load_configuration
from tests.chains.evm.deployed import call
from tests.chains.evm.nodes import ADMIN, STRANGER, Node, anvil_or_skip

OWN = 424_242
SETTINGS = """
mode = "sandbox"
public_url = "https://pay.example"

[keys]
ring = "{ring}"

[storage]
url = "memory:"

[limiter]
url = "memory:"

[providers.signer]
url = "file://{folder}/operator.key"

[chains.424242]
urls = ["evm+{url}"]
settings = {{ admin = "{admin}" }}

[networks.424242]
name = "Own"
rpc_url = "https://node.example"
explorer_url = "https://explorer.example"
native_currency = {{ name = "Reel", symbol = "REEL", decimals = 18 }}
block_ms = 1000
acceptance = [{{ up_to = "10.00", depth = 1 }}, {{ depth = 4 }}]

[networks.424242.fees]
min_priority = 0
max_initial_priority = 100000000
max_priority = 2000000000
fee_ceiling = 10000000000

[[networks.424242.tokens]]
symbol = "SHOP"
address = "{token}"
decimals = {decimals}
"""


@attrs.frozen
class Chain:
    """The node, the token on it, and where the settings are."""

    node: Node
    token: str
    folder: Path

    def configure(self, decimals: int = 6) -> Path:
        path = self.folder / "payments.toml"
        text = SETTINGS.format(
            ring=KeyRing.generate().strip(), folder=self.folder, url=self.node.url, admin=ADMIN,
            token=self.token.lower(), decimals=decimals,
        )  # fmt: skip
        path.write_text(text)
        path.chmod(0o600)
        return path


@pytest.fixture
def chain(tmp_path: Path) -> Iterator[Chain]:
    LocalSigner.open(tmp_path / "operator.key")
    with anvil_or_skip(chain_id=OWN) as process, closing(Node(process.url)) as node:
        node.do(ADMIN, DEPLOYER, calls.deploy(Deployment(ADMIN).creation))
        yield Chain(node, node.create(load_contract("TestToken").creation), tmp_path)


def test_a_payment_is_made_in_a_token_of_a_chain_that_only_the_settings_name(chain: Chain) -> None:
    configuration = load_configuration(chain.configure(), {})
    clock, node = FixedClock(), chain.node
    storage = build.build_storage(configuration)
    storage.migrate()
    ring = build.build_key_ring(configuration)
    service = build.build_service(configuration, storage, ring, clock=clock)
    build.require_matching_chains(service)
    environment_id = service.tenants.create_app("Shop", "shop").environments["sandbox"]
    operator = LocalSigner.open(chain.folder / "operator.key").address(environment_id)
    factory = Deployment(ADMIN).factory
    node.do(ADMIN, factory, calls.set_operator(environment_id, operator, allowed=True))
    node.do(ADMIN, operator, value=10**18)
    shop = service.environment(environment_id)
    eve = shop.accounts.create(NewAccount(external_user_id="eve", subject_type="individual"))
    assert [vault.chain_id for vault in eve.vaults] == [OWN]
    order = NewPayment(
        amount="25.00",
        chain_id=OWN,
        asset_symbol="SHOP",
        destination=ToAccount(account_id=eve.account.id),
    )
    payment = shop.payments.receive(order).payment
    worker = service.worker("sandbox")

    def read_after(blocks: int) -> str:
        node.ask("anvil_mine", hex(blocks))
        clock.advance(60)
        worker.run_until_idle()
        return shop.payments.read(payment.id).payment.status

    node.do(
        STRANGER,
        chain.token,
        call("mint(address,uint256)", str(payment.escrow_address), 25_000_000),
    )
    assert [read_after(1), read_after(3), read_after(4)] == ["processing", "executing", "succeeded"]
    assert shop.accounts.read_balances(eve.account.id)[0].total_atomic == 25_000_000
    service.close()


def test_each_node_of_it_is_checked(chain: Chain) -> None:
    now_s = SystemClock().now() // SECOND
    chain.node.ask("evm_setNextBlockTimestamp", hex(now_s - 60))
    chain.node.ask("anvil_mine", hex(6))
    arguments = ["networks", "check", str(OWN), "--config", str(chain.configure())]
    done = CliRunner().invoke(payments, arguments, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    assert "latest block 8, final block 4 behind it" in done.output


def test_decimals_that_the_tokens_contract_contradicts_are_refused(chain: Chain) -> None:
    configuration = load_configuration(chain.configure(decimals=18), {})
    storage = build.build_storage(configuration)
    service = build.build_service(configuration, storage, build.build_key_ring(configuration))
    with pytest.raises(ConfigurationRefused, match=r"chains\.424242 .*SHOP"):
        build.require_matching_chains(service)
    service.close()
