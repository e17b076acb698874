"""The registry of networks: what is shipped, and when a block counts."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pytest
from eth_utils import is_checksum_address
from hypothesis import given
from hypothesis import strategies as st

from payments_core.acceptance import Acceptance
from payments_core.addresses import NATIVE_ADDRESS, normalize_address
from payments_core.errors import UnsupportedAsset, UnsupportedChain, ValidationFailed
from payments_core.evolve import evolve
from payments_core.networks import Asset, FeePolicy, NativeCurrency, Network, shipped_networks

ROOT = Path(__file__).resolve().parents[2]
HEIGHTS = st.integers(0, 2**63 - 1)
NETWORKS = shipped_networks()
MAINNETS = {1: "Ethereum", 8453: "Base", 137: "Polygon", 42161: "Arbitrum", 10: "Optimism"}
TESTNETS = {
    11155111: "Ethereum Sepolia",
    84532: "Base Sepolia",
    80002: "Polygon Amoy",
    421614: "Arbitrum Sepolia",
    11155420: "OP Sepolia",
}


def test_what_is_shipped_passes_the_check_of_every_other_registry() -> None:
    """A service does not repeat it for them at each start."""
    assert dict(NETWORKS.merge(*NETWORKS.values())) == dict(NETWORKS)


def test_the_mainnets_and_their_testnets_are_shipped() -> None:
    assert list(NETWORKS) == [*MAINNETS, *TESTNETS]
    for chain_id, network in NETWORKS.items():
        assert network.chain_id == chain_id
        assert network.is_testnet == (chain_id in TESTNETS)
        assert network.name == (MAINNETS | TESTNETS)[chain_id]
    assert len(NETWORKS) == 10


def test_every_shipped_token_has_a_right_checksum_known_decimals_and_a_source() -> None:
    document = tomllib.loads((ROOT / "payments_core/networks.toml").read_text(encoding="utf-8"))
    for chain_id, network in NETWORKS.items():
        table = document[str(chain_id)]
        assert all(row["source"] for row in (*table["tokens"], *table.get("watch_list", ())))
        assert table["acceptance_source"].startswith("https://")
        assert {token.decimals for token in network.tokens} == {6}
        for token in NETWORKS.list_tokens(chain_id):
            assert token.chain_id == chain_id
            assert is_checksum_address(token.address)
            assert normalize_address(network.chain_type, token.address) == token.address
            assert NETWORKS.find_token(chain_id, token.symbol) == token
            assert NETWORKS.identify_token(chain_id, token.address) == token
        for token in network.tokens:
            assert NETWORKS.find_asset(chain_id, token.symbol) is token


def test_what_is_not_registered_is_unsupported() -> None:
    with pytest.raises(UnsupportedChain):
        NETWORKS.find_network(2)
    with pytest.raises(UnsupportedChain):
        NETWORKS.find_token(2, "USDC")
    with pytest.raises(UnsupportedAsset):
        NETWORKS.find_asset(8453, "USDT")  # of the watch list only
    assert NETWORKS.find_token(8453, "USDT").decimals == 6
    assert NETWORKS.list_tokens(2) == ()
    assert NETWORKS.identify_token(8453, "0x") is None


def test_the_page_of_the_reference_lists_every_policy() -> None:
    page = (ROOT / "docs/reference/finality.md").read_text(encoding="utf-8")
    for id, network in NETWORKS.items():
        assert f"| {network.name} | {id} | `{network.finality.tag}` |" in page
        assert network.finality.depth == 0  # else the page must say it


@pytest.mark.parametrize(("tag", "depth"), [(None, 0), ("finalized", -1), (None, -1)])
def test_acceptance_must_ask_for_something(tag: None, depth: int) -> None:
    with pytest.raises(ValueError):
        Acceptance(tag, depth)


@pytest.mark.parametrize(
    ("acceptance", "tagged", "final"),
    [
        (Acceptance("finalized"), 92, 92),
        (Acceptance("finalized", depth=3), 92, 92),
        (Acceptance("safe", depth=20), 92, 80),
        (Acceptance(None, depth=20), None, 80),
        (Acceptance(None, depth=200), None, 0),
    ],
)
def test_the_accepted_height_is_the_lower_of_tag_and_depth(
    acceptance: Acceptance, tagged: int | None, final: int
) -> None:
    assert acceptance.find_height(100, tagged) == final


@given(HEIGHTS, HEIGHTS, st.integers(1, 1_000))
def test_more_depth_never_accepts_more(latest: int, tagged: int, depth: int) -> None:
    rule, deeper = Acceptance("safe", depth), Acceptance("safe", depth + 1)
    tagged = min(tagged, latest)
    assert 0 <= deeper.find_height(latest, tagged) <= rule.find_height(latest, tagged) <= tagged
    assert rule.find_height(latest, tagged) <= max(0, latest - depth)


# --- A registry of one's own ---------------------------------------------------------------------

TOKEN = Asset(77, "USDC", "0x" + "2" * 40, 6)
OWN = Network(
    chain_id=77,
    name="Tape",
    tokens=(TOKEN,),
    rpc_url="https://node.example",
    explorer_url="https://explorer.example",
)
SMALL, MIDDLE = Acceptance(depth=1, up_to="10.00"), Acceptance("safe", up_to="1000")
ANY = Acceptance("finalized")


def test_the_native_coin_of_an_evm_network_is_noticed_unless_a_token_has_its_symbol() -> None:
    coin = Asset(77, "ETH", NATIVE_ADDRESS, 18)
    assert OWN.noticed_tokens == (TOKEN, coin)
    merged = NETWORKS.merge(OWN)
    assert merged.find_token(77, "ETH") == merged.identify_token(77, NATIVE_ADDRESS) == coin
    assert not merged.is_credited(coin)
    assert not merged.is_wallet_address("evm", NATIVE_ADDRESS)
    named = evolve(OWN, native_currency=NativeCurrency("Dollar", TOKEN.symbol, 18))
    assert named.noticed_tokens == (TOKEN,)
    assert evolve(OWN, chain_type="solana").noticed_tokens == (TOKEN,)


def test_a_network_is_added_and_one_is_replaced() -> None:
    assert list(NETWORKS.merge(OWN)) == [*NETWORKS, 77]
    lower = evolve(TOKEN, address="0x" + "ab" * 20)
    merged = NETWORKS.merge(evolve(OWN, tokens=(lower,)))
    assert is_checksum_address(merged[77].tokens[0].address)
    renamed = NETWORKS.merge(evolve(NETWORKS[1], name="Mainnet"))
    assert (list(renamed), renamed[1].name) == (list(NETWORKS), "Mainnet")
    assert NETWORKS[1].name == "Ethereum"
    assert NETWORKS.name_network(77) == "chain 77"
    assert merged.name_network(77) == "Tape"
    assert not NETWORKS.is_credited(TOKEN)
    assert not merged.is_wallet_address("evm", lower.address)
    assert not merged.is_wallet_address("evm", "0x")
    assert NETWORKS.is_wallet_address("evm", lower.address)


@pytest.mark.parametrize(
    ("changes", "path"),
    [
        ({"chain_id": 0, "tokens": (evolve(TOKEN, chain_id=0),)}, "chain_id"),
        ({"name": ""}, "name"),
        ({"name": " Tape"}, "name"),
        ({"tokens": ()}, "tokens"),
        ({"rpc_url": "node.example"}, "rpc_url"),
        ({"explorer_url": ""}, "explorer_url"),
        ({"explorer_url": "http://explorer.example"}, "explorer_url"),
        ({"explorer_url": "https://me:hidden@explorer.example"}, "explorer_url"),
        ({"explorer_url": "https://explorer.example/?cluster=test"}, "explorer_url"),
        ({"explorer_url": 'https://explorer.example/"><script>'}, "explorer_url"),
        ({"explorer_url": "javascript:alert(1)//https://explorer.example"}, "explorer_url"),
        ({"acceptance": ()}, "acceptance"),
        ({"native_currency": NativeCurrency("Two\nlines", "ETH", 18)}, "native_currency.name"),
        ({"native_currency": NativeCurrency("Ether", "<b>", 18)}, "native_currency.symbol"),
        ({"native_currency": NativeCurrency("Ether", "ETH", -1)}, "native_currency.decimals"),
        ({"block_ms": 0}, "block_ms"),
        ({"finalized_s": -1}, "finalized_s"),
        ({"tokens": (evolve(TOKEN, chain_id=78),)}, "tokens[0].chain_id"),
        ({"tokens": (evolve(TOKEN, symbol="US DC"),)}, "tokens[0].symbol"),
        ({"tokens": (evolve(TOKEN, decimals=37),)}, "tokens[0].decimals"),
        ({"tokens": (evolve(TOKEN, decimals=1),)}, "tokens[0].decimals"),
        ({"tokens": (evolve(TOKEN, address="0x12"),)}, "tokens[0].address"),
        ({"tokens": (TOKEN, evolve(TOKEN, symbol="USDT"))}, "tokens[1].address"),
        ({"tokens": (evolve(TOKEN, address=NATIVE_ADDRESS.lower()),)}, "tokens[0].address"),
        ({"watch_list": (evolve(TOKEN, address="0x" + "3" * 40),)}, "watch_list[0].symbol"),
        ({"acceptance": (SMALL,)}, "acceptance[0].up_to"),
        ({"acceptance": (Acceptance(depth=1), ANY)}, "acceptance[0].up_to"),
        ({"acceptance": (evolve(SMALL, up_to="1e3"), ANY)}, "acceptance[0].up_to"),
        ({"acceptance": (SMALL, evolve(MIDDLE, up_to="10"), ANY)}, "acceptance[1].up_to"),
        ({"acceptance": (MIDDLE, Acceptance(depth=9))}, "acceptance[1]"),
        ({"acceptance": (evolve(SMALL, depth=5), Acceptance(depth=4))}, "acceptance[1]"),
    ],
)
def test_each_field_that_is_wrong_is_named_by_its_path(changes: Any, path: str) -> None:
    wrong = evolve(OWN, **changes)
    with pytest.raises(ValidationFailed) as refused:
        NETWORKS.merge(wrong)
    assert f"networks.{wrong.chain_id}.{path}" in [fault.path for fault in refused.value.fields]


@pytest.mark.parametrize("chain_id", [1, 84532])
def test_a_shipped_network_stays_a_testnet_or_not(chain_id: int) -> None:
    """Else real money might be served beside simulations, or a testnet's in production."""
    network = NETWORKS[chain_id]
    with pytest.raises(ValidationFailed, match=rf"networks\.{chain_id}\.is_testnet"):
        NETWORKS.merge(evolve(network, is_testnet=not network.is_testnet))


def test_a_transaction_gets_at_least_the_gas_that_it_uses() -> None:
    with pytest.raises(ValueError, match="the gas that it usually uses"):
        FeePolicy(
            min_priority=0,
            max_initial_priority=0,
            max_priority=0,
            fee_ceiling=0,
            unestimated_margin=0,
        )


def test_a_value_of_another_kind_is_refused() -> None:
    with pytest.raises(ValidationFailed, match="name"):
        NETWORKS.merge(evolve(OWN, name=5))
    with pytest.raises(ValidationFailed, match=r"networks\[1\].*must be a Network"):
        NETWORKS.merge(OWN, 5)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("amount_atomic", "row"),
    [(1, SMALL), (10_000_000, SMALL), (10_000_001, MIDDLE), (10**9, MIDDLE), (10**9 + 1, None)],
)
def test_the_first_row_that_covers_an_amount_applies(
    amount_atomic: int, row: Acceptance | None
) -> None:
    network = NETWORKS.merge(evolve(OWN, acceptance=(SMALL, MIDDLE, ANY)))[77]
    assert network.choose_acceptance(amount_atomic, 6) == row
    assert network.finality == ANY
    assert OWN.choose_acceptance(amount_atomic, 6) is None
