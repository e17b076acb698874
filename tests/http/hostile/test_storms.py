"""While hostile clients do what they can, others are answered; afterwards nothing is left.

`make storm` plays the same attacks for longer, and all of them at once.
"""

from __future__ import annotations

import pytest

from tests.http.hostile.attacks import ATTACKS, Attack
from tests.http.hostile.quick_client import measured, under
from tests.http.hostile.target import Target

STORM_S = 0.6
REQUESTS = 150
"""At least: the p99 of fewer than a hundred is the longest, such as the one that meets the start of
the attack."""
P99_S = 1.0


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
def test_quick_clients_are_answered_during(target: Target, attack: Attack) -> None:
    with under(target, attack):
        waits = measured(target, STORM_S, REQUESTS)
        held = target.figures()
    assert waits.p99_s < P99_S, str(waits)
    assert held.threads <= target.at_rest.threads + 1  # that asks whether the storage answers
    assert held.memory_mb < target.at_rest.memory_mb + 300, (target.at_rest, held)
