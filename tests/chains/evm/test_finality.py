"""When a block is final, by policy."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from payments_core.assets import CHAINS
from payments_core.chains.evm.finality import FINALITY, Finality, finality_of
from payments_core.chains.port import ChainMismatch

ROOT = Path(__file__).resolve().parents[3]
HEIGHTS = st.integers(0, 2**63 - 1)


def test_every_chain_of_the_registry_has_a_policy() -> None:
    assert set(FINALITY) == {id for id, chain in CHAINS.items() if chain.chain_type == "evm"}


def test_the_page_of_the_reference_lists_every_policy() -> None:
    page = (ROOT / "docs/reference/finality.md").read_text(encoding="utf-8")
    for id, policy in FINALITY.items():
        assert f"| {CHAINS[id].name} | {id} | `{policy.tag}` |" in page
        assert policy.depth == 0  # else the page must say it


def test_a_deployments_own_policy_comes_first() -> None:
    own = Finality("safe", depth=2)
    assert finality_of(8453, {8453: own}) == own
    assert finality_of(10, {8453: own}) == FINALITY[10]
    assert finality_of(31337, {31337: own}) == own


def test_a_chain_without_a_policy_is_not_served() -> None:
    with pytest.raises(ChainMismatch, match="31337"):
        finality_of(31337)


@pytest.mark.parametrize(("tag", "depth"), [(None, 0), ("finalized", -1), (None, -1)])
def test_a_policy_must_ask_for_something(tag: None, depth: int) -> None:
    with pytest.raises(ValueError):
        Finality(tag, depth)


@pytest.mark.parametrize(
    ("policy", "tagged", "final"),
    [
        (Finality("finalized"), 92, 92),
        (Finality("finalized", depth=3), 92, 92),
        (Finality("safe", depth=20), 92, 80),
        (Finality(None, depth=20), None, 80),
        (Finality(None, depth=200), None, 0),
    ],
)
def test_the_final_height_is_the_lower_of_tag_and_depth(
    policy: Finality, tagged: int | None, final: int
) -> None:
    assert policy.final_height(100, tagged) == final


@given(HEIGHTS, HEIGHTS, st.integers(1, 1_000))
def test_more_depth_never_makes_more_final(latest: int, tagged: int, depth: int) -> None:
    policy, deeper = Finality("safe", depth), Finality("safe", depth + 1)
    tagged = min(tagged, latest)
    assert 0 <= deeper.final_height(latest, tagged) <= policy.final_height(latest, tagged) <= tagged
    assert policy.final_height(latest, tagged) <= max(0, latest - depth)
