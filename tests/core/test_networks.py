"""The registry of networks: what is shipped, and when a block counts."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from eth_utils import is_checksum_address
from hypothesis import given
from hypothesis import strategies as st

from payments_core.addresses import normalize_address
from payments_core.errors import UnsupportedAsset, UnsupportedChain
from payments_core.networks import Acceptance, shipped_networks

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
            assert NETWORKS.find_token(chain_id, token.symbol) is token
            assert NETWORKS.identify_token(chain_id, token.address) is token
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
