"""Episodes that are mostly about banks: they come by every row of their tables."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.service.model.banks_books import ROWS
from tests.service.model.episode import run

MOST_EPISODES = 60


@pytest.mark.timeout(300)
def test_every_row_of_payouts_and_on_ramps_is_reached() -> None:
    tally: Counter[str] = Counter()
    for seed in range(MOST_EPISODES):
        tally += run(seed, part="banks").tally
        if all(tally[row] for row in ROWS):
            return
    raise AssertionError(f"never reached: {[row for row in ROWS if not tally[row]]}")
