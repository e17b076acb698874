"""The block by which a wallet's network is told from others with the same number."""

from __future__ import annotations

import pytest

from payments_core.chains.scanner import ScanCursor


@pytest.mark.parametrize(
    ("heights", "chosen"),
    [
        ((0,), 0),
        ((5, 20), 5),
        ((5, 20, 21), 5),
        ((5, 20, 36), 20),
        ((5, 20, 35), 5),
        ((1, 84, 132, 148), 132),
    ],
)
def test_it_is_the_newest_that_a_node_which_lags_a_little_has(
    heights: tuple[int, ...], chosen: int
) -> None:
    ring = tuple((height, f"0x{height:064x}") for height in heights)
    cursor = ScanCursor(id="sandbox:8453", chain_id=8453, ring=ring)
    assert cursor.landmark == (chosen, f"0x{chosen:064x}")
