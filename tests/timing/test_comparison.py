"""The statistics behind `make timing`, on samples that were drawn and not measured."""

from __future__ import annotations

import random

import pytest

from tests.timing.comparison import (
    Comparison,
    batched,
    compared,
    midmean,
    refused_share,
    slower,
)

BATCH = 100


def times(id_sequence: random.Random, later_us: float = 0.0, count: int = 4_000) -> list[float]:
    """Times as a busy machine has them: a spread, and now and then something in between."""
    return [
        50
        + later_us
        + id_sequence.gammavariate(4, 2)
        + (id_sequence.random() < 0.02) * id_sequence.uniform(0, 5_000)
        for _ in range(count)
    ]


def held_against(later_us: float, seed: int = 1) -> Comparison:
    id_sequence = random.Random(seed)
    return compared("late", times(id_sequence, later_us), times(id_sequence), BATCH, id_sequence)


@pytest.mark.parametrize("seed", range(5))
def test_the_same_is_found_alike(seed: int) -> None:
    found = held_against(0.0, seed)
    assert found.is_within(2.0)
    assert abs(found.slower - 0.5) < 0.03
    assert found.chance > 0.005


@pytest.mark.parametrize("later_us", [2.0, -2.0, 20.0])
def test_a_delay_is_found_and_reported_in_its_size(later_us: float) -> None:
    found = held_against(later_us)
    assert found.low_us < later_us < found.high_us
    assert not found.is_within(abs(later_us))
    assert (found.slower > 0.5) == (later_us > 0)
    assert found.chance < 0.01
    assert found.smallest_seen_us < 1.0


def test_a_drift_of_the_machine_is_not_a_difference() -> None:
    id_sequence = random.Random(7)
    drift = [number / 10 for number in range(4_000)]
    one = [time + more for time, more in zip(times(id_sequence), drift, strict=True)]
    other = [time + more for time, more in zip(times(id_sequence), drift, strict=True)]
    assert compared("same", one, other, BATCH, id_sequence).is_within(3.0)


def test_too_few_samples_refuse_the_claim() -> None:
    id_sequence = random.Random(3)
    noisy = [id_sequence.uniform(0, 1_000) for _ in range(400)]
    other = [id_sequence.uniform(0, 1_000) for _ in range(400)]
    assert not compared("same", noisy, other, 40, id_sequence).is_within(10.0)


def test_the_power_is_that_of_refusing() -> None:
    id_sequence = random.Random(5)
    at_margin = batched(times(id_sequence, 2.2), times(id_sequence), BATCH)
    assert refused_share(at_margin, 2.0, id_sequence) > 0.99
    alike = batched(times(id_sequence), times(id_sequence), BATCH)
    assert refused_share(alike, 2.0, id_sequence) < 0.01


def test_ranks_and_midmeans() -> None:
    assert slower([3.0, 4.0], [1.0, 2.0]) == 1.0
    assert slower([1.0, 2.0], [3.0, 4.0]) == 0.0
    assert slower([1.0, 2.0, 2.0], [2.0, 1.0, 2.0]) == 0.5
    assert midmean([1.0, 2.0, 4.0, 1_000.0]) == 3.0
