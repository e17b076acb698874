"""Which block counts for a Payment: the chain's own final one, or an earlier row's."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from payments_core.acceptance import Acceptance
from payments_core.chains.judge import apply_acceptance
from payments_core.chains.port import Block, Heads

LATEST, SAFE, FINAL = 100, 90, 80
HEADS = Heads(Block(LATEST, "0xl"), Block(FINAL, "0xf"), SAFE)
ROWS = st.none() | st.builds(
    Acceptance, st.sampled_from(["latest", "safe", "finalized"]), st.integers(0, 200)
)


@pytest.mark.parametrize(
    ("early", "confirmations", "height"),
    [
        (None, 0, FINAL),
        (None, 25, 75),
        (Acceptance("latest"), 0, LATEST),
        (Acceptance("latest"), 3, 97),
        (Acceptance(depth=5), 0, 95),
        (Acceptance(depth=5), 7, 93),
        (Acceptance(depth=50), 0, FINAL),  # the chain's own final block always counts
        (Acceptance("safe"), 0, SAFE),
        (Acceptance("safe", depth=15), 0, 85),
        (Acceptance("finalized", depth=3), 0, FINAL),
    ],
)
def test_a_row_and_the_settings_choose_the_newest_block_that_counts(
    early: Acceptance | None, confirmations: int, height: int
) -> None:
    assert apply_acceptance(HEADS, early, confirmations).final.number == height


def test_a_chain_that_knows_no_safe_block_accepts_its_final_ones() -> None:
    heads = Heads(HEADS.latest, HEADS.final)
    assert apply_acceptance(heads, Acceptance("safe"), 0) is heads


@given(ROWS, st.integers(0, 200), st.integers(0, 200))
def test_confirmations_only_put_off_and_a_row_only_brings_forward(
    early: Acceptance | None, confirmations: int, more: int
) -> None:
    plain = apply_acceptance(HEADS, None, confirmations).final.number
    accepted = apply_acceptance(HEADS, early, confirmations).final.number
    later = apply_acceptance(HEADS, early, confirmations + more).final.number
    assert plain <= accepted <= LATEST - confirmations
    assert later <= accepted
