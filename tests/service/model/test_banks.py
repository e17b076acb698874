"""Episodes that are mostly about banks: they come by every row of their tables."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from tests.service.model.banking import BANK_CALLERS, BANK_HAPPENINGS, undo_what_was_final
from tests.service.model.banks_books import ROWS
from tests.service.model.episode import Episode
from tests.service.model.mishaps import (
    advance,
    crash_at_work,
    fund,
    meanwhile,
    trouble_at_work,
    work,
    work_in_vain,
)
from tests.service.model.rules import Act, cancel, suspend

STEPS = 80
MOST_EPISODES = 60

RULES: tuple[tuple[int, Act], ...] = (
    *BANK_CALLERS,
    *BANK_HAPPENINGS,
    (4, cancel),
    (2, suspend),
    (3, fund),
    (12, work),
    (12, advance),
    (3, undo_what_was_final),
    (4, work_in_vain),
    (4, crash_at_work),
    (2, trouble_at_work),
    (4, meanwhile),
)


@pytest.mark.timeout(300)
def test_every_row_of_payouts_and_on_ramps_is_reached() -> None:
    tally: Counter[str] = Counter()
    for seed in range(MOST_EPISODES):
        tally += play(seed)
        if all(tally[row] for row in ROWS):
            return
    raise AssertionError(f"never reached: {[row for row in ROWS if not tally[row]]}")


def play(seed: int) -> Counter[str]:
    """One episode of these rules, and what it reached."""
    episode = Episode(seed)
    acts, weights = [act for _, act in RULES], [weight for weight, _ in RULES]
    for number in range(STEPS):
        rng = random.Random(f"banks/{seed}/{number}")
        episode.step(number, rng.choices(acts, weights)[0], rng)
    episode.end()
    return episode.tally
