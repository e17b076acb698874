"""Episodes that are mostly about what does not count: it is reported, and goes back."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.service.model.episode import run

MOST_EPISODES = 60
WANTED = (
    "label misdirected",
    "event payment.misdirected",
    "event deposit.misdirected",
    "event deposit.returned",
    "done reconcile return_misdirected",
    "done return_deposit",
)


@pytest.mark.timeout(300)
def test_escrows_and_deposit_addresses_give_back_what_does_not_count() -> None:
    tally: Counter[str] = Counter()
    for seed in range(MOST_EPISODES):
        tally += run(seed, part="misdirected").tally
        if all(tally[name] for name in WANTED):
            return
    raise AssertionError(f"never reached: {[name for name in WANTED if not tally[name]]}")
