"""Networks, tokens and policies in the configuration file."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from payments_core.acceptance import Acceptance
from payments_core.networks import Networks, shipped_networks
from payments_core_http.deployment.build import build_chains
from payments_core_http.deployment.loader import ConfigurationRefused, load_configuration
from payments_core_http.deployment.networks import build_networks, describe_sandbox
from payments_core_http.deployment.startup_rules import require_startable
from tests.deployment.settings import PRODUCTION, SANDBOX
from tests.deployment.settings import configured as configured_by

EURC = "0x60a3E35Cc302bFA44Cb288Bc5a4F316Fdb1adb42"
USDT = "0xfde4C96c8593536E31F229EA8f37b2ADa2699bb2"  # of the watch list of Base
OWN = """
[networks.77]
name = "Tape"
rpc_url = "https://node.example"
explorer_url = "https://explorer.example"
native_currency = { name = "Reel", symbol = "REEL", decimals = 9 }
is_testnet = true
tokens = [{ symbol = "USDC", address = "0x2222222222222222222222222222222222222222", decimals = 6 }]
acceptance = [{ depth = 5 }]
[networks.77.fees]
min_priority = 0
max_initial_priority = 1
max_priority = 2
fee_ceiling = 3
"""


def configured(tmp_path: Path, text: str, mode: str = "sandbox", **chains: str) -> Networks:
    """The registry of a file, with the URL of a node for each of `chains`."""
    path = tmp_path / "payments.toml"
    path.write_text(text)
    base = dict(SANDBOX if mode == "sandbox" else PRODUCTION)
    if chains:
        base.pop("PAYMENTS_SIMULATED_CHAINS", None)
        base |= {f"PAYMENTS_CHAINS_{number[1:]}_URLS": url for number, url in chains.items()}
    return build_networks(load_configuration(path, base))


def faults_of(tmp_path: Path, text: str, mode: str = "sandbox", **chains: str) -> list[str]:
    with pytest.raises(ConfigurationRefused) as refused:
        configured(tmp_path, text, mode, **chains)
    return [f"{fault.path} {fault.message}" for fault in refused.value.faults]


def test_a_network_of_ones_own_needs_no_code(tmp_path: Path) -> None:
    networks = configured(tmp_path, OWN, c77="evm+https://node.example")
    own = networks[77]
    assert (own.name, own.is_testnet, own.native_currency.symbol) == ("Tape", True, "REEL")
    assert own.acceptance == (Acceptance(depth=5),)
    assert own.fees is not None and own.fees.unestimated_margin == 2
    assert networks.find_asset(77, "USDC").decimals == 6
    assert list(networks) == [*shipped_networks(), 77]


def test_a_shipped_network_gets_tokens_and_a_policy(tmp_path: Path) -> None:
    networks = configured(
        tmp_path,
        f"""
        [networks.8453]
        acceptance = [{{ up_to = "50.00", depth = 3 }}, {{ tag = "finalized" }}]
        [[networks.8453.tokens]]
        symbol = "EURC"
        address = "{EURC}"
        decimals = 6
        [[networks.8453.tokens]]
        symbol = "USDT"
        address = "{USDT.lower()}"
        decimals = 6
        """,
    )
    base, shipped = networks[8453], shipped_networks()[8453]
    assert base.acceptance == (Acceptance(depth=3, up_to="50.00"), Acceptance("finalized"))
    assert {token.symbol for token in base.tokens} == {"USDC", "EURC", "USDT"}
    assert networks.find_asset(8453, "USDT").address == USDT
    assert "USDT" not in {token.symbol for token in base.watch_list}
    assert (base.name, base.fees, base.rpc_url) == (shipped.name, shipped.fees, shipped.rpc_url)


def test_without_a_table_the_shipped_networks_apply(tmp_path: Path) -> None:
    assert dict(configured(tmp_path, "")) == dict(shipped_networks())


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ('name = "Tape"', "networks.77.name must have 1 to 64 visible characters"),
        ('rpc_url = "https://node.example"', "networks.77.rpc_url must be an http:// or https://"),
        ("tokens = .*", "networks.77.tokens must have at least one token"),
    ],
)
def test_what_a_network_of_ones_own_lacks_is_named(tmp_path: Path, change: str, fault: str) -> None:
    assert faults_of(tmp_path, re.sub(change, "", OWN))[0].startswith(fault)


@pytest.mark.parametrize(
    ("before", "after", "fault"),
    [
        ("decimals = 6", "decimals = 99", "networks.77.tokens[0].decimals must be"),
        ("decimals = 6", 'decimals = "6"', "networks.77.tokens[0].decimals must be"),
        ("0x2222", "0x", "networks.77.tokens[0].address must be 0x and 40 hex digits"),
        ('"USDC"', '"US DC"', "networks.77.tokens[0].symbol must have 1 to 16 letters"),
        ("{ depth = 5 }", "{ }", "networks.77.acceptance[0] cannot be used"),
        ("{ depth = 5 }", '{ tag = "soon" }', "networks.77.acceptance[0].tag must be"),
        ("{ depth = 5 }", '{ depth = 5, up_to = "1" }', "networks.77.acceptance[0].up_to must be"),
        ("max_priority = 2", "max_priority = 0", "networks.77.fees cannot be used: the bounds"),
        ("min_priority = 0", "", "networks.77.fees.min_priority is required"),
        ('symbol = "REEL", ', "", "networks.77.native_currency.symbol is required"),
        ("is_testnet = true", "testnet = true", "networks.77.testnet"),
        ("[networks.77]", "[networks.tape]", "networks.tape"),
    ],
)
def test_each_wrong_field_is_named_by_its_path(
    tmp_path: Path, before: str, after: str, fault: str
) -> None:
    text = OWN.replace(before, after)
    if before == "[networks.77]":
        text = text.partition("[networks.77.fees]")[0]
    assert faults_of(tmp_path, text)[0].startswith(fault)


def test_a_second_token_of_one_symbol_is_refused(tmp_path: Path) -> None:
    row = f'tokens = [{{ symbol = "USDC", address = "{EURC}", decimals = 6 }}]'
    (fault,) = faults_of(tmp_path, f"[networks.8453]\n{row}")
    assert fault == "networks.8453.tokens[1].symbol USDC is given twice"


def test_a_chain_that_no_network_describes_is_refused(tmp_path: Path) -> None:
    (fault,) = faults_of(tmp_path, "", c77="evm+https://node.example")
    assert fault == "chains.77 is not a known network: describe it in networks.77"
    configured(tmp_path, "", c900="solana+https://node.example")  # its balances are read
    (fault,) = faults_of(tmp_path, OWN, c77="solana+https://node.example")
    assert fault == "chains.77 is only read, and has no Payments: remove networks.77"


def test_production_refuses_a_testnet(tmp_path: Path) -> None:
    (fault,) = faults_of(tmp_path, "", "production", c84532="evm+https://node.example")
    assert fault == "chains.84532 is the testnet Base Sepolia: its money has no value"
    assert 84532 in configured(tmp_path, "", c84532="evm+https://node.example")


def test_all_chains_have_contracts_of_one_generation(tmp_path: Path) -> None:
    node = "evm+https://node.example"

    def give(*generations: str) -> str:
        return "\n".join(
            f'[chains.{number}.settings]\nadmin = "{EURC}"\n{generation}'
            for number, generation in zip((8453, 137), generations, strict=True)
        )

    first, second = 'generation = "1"', 'generation = "2"'
    for one, other in ((first, first), (second, ""), ("", "")):
        configured(tmp_path, give(one, other), c8453=node, c137=node)
    (fault,) = faults_of(tmp_path, give(first, ""), c8453=node, c137=node)
    assert fault == (
        "chains.137.settings.generation must be that of chains.8453, 1: an account has one address "
        "on all"
    )


def test_a_testnet_may_be_beside_simulated_chains_and_real_money_not(tmp_path: Path) -> None:
    simulated = "simulated_chains = true\n"
    for number in (84532, 8453):
        path = tmp_path / f"{number}.toml"
        path.write_text(f'{simulated}[chains.{number}]\nurls = ["evm+https://node.example"]')
        configuration = load_configuration(
            path, {**SANDBOX, "PAYMENTS_PROVIDERS_SIGNER_URL": "a:b"}
        )
        require_startable(configuration)
        if number == 84532:
            assert 84532 in build_networks(configuration)
            continue
        with pytest.raises(ConfigurationRefused, match=r"chains\.8453 has real money: only"):
            build_networks(configuration)


def test_the_banner_of_a_sandbox_says_which_networks_are_simulated_and_which_real() -> None:
    mixed = configured_by(SANDBOX, CHAINS_84532_URLS="evm+https://node.example")
    assert list(describe_sandbox(mixed)) == [
        "Simulated networks: Ethereum (1), Base (8453), Polygon (137), Arbitrum (42161),"
        " Optimism (10).",
        "Public test networks: Base Sepolia (84532).",
    ]
    real = configured_by(
        SANDBOX, SIMULATED_CHAINS="false", CHAINS_8453_URLS="evm+https://node.example"
    )
    assert list(describe_sandbox(real)) == ["Networks with real money: Base (8453)."]
    assert list(describe_sandbox(configured_by(PRODUCTION))) == []


def test_an_evm_chain_without_fees_is_refused_when_it_is_opened(tmp_path: Path) -> None:
    path = tmp_path / "payments.toml"
    path.write_text(OWN.partition("[networks.77.fees]")[0])
    base = {
        **SANDBOX,
        "PAYMENTS_SIMULATED_CHAINS": "false",
        "PAYMENTS_CHAINS_77_URLS": "evm+https://node.example",
        "PAYMENTS_CHAINS_77_SETTINGS_ADMIN": PRODUCTION["PAYMENTS_CHAINS_8453_SETTINGS_ADMIN"],
        "PAYMENTS_PROVIDERS_SIGNER_URL": f"file://{tmp_path}/key",
    }
    from payments_core.chains.evm.signers import LocalSigner

    LocalSigner.open(tmp_path / "key")
    with pytest.raises(ConfigurationRefused, match=r"chains\.77 .* fee policy of chain 77"):
        build_chains(load_configuration(path, base))


def test_a_shipped_testnet_is_not_called_a_mainnet(tmp_path: Path) -> None:
    text = "[networks.84532]\nis_testnet = false"
    [fault] = faults_of(tmp_path, text, "production", c84532="evm+https://node.example")
    assert fault.startswith("networks.84532.is_testnet is known of this network")
