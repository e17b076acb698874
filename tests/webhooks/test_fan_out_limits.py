"""A turn fans out events of an environment for about one commit, however many endpoints it has."""

from __future__ import annotations

import pytest

from payments_core.webhooks.dispatch.fan_out_limits import (
    FAN_OUT_BATCH,
    MAX_DELIVERIES_PER_COMMIT,
    MAX_REMEMBERED_LANES,
    FanOutLimits,
)


@pytest.mark.parametrize(
    ("events", "deliveries", "next_time"),
    [
        (4, 0, FAN_OUT_BATCH),
        (4, 4, FAN_OUT_BATCH),
        (4, 4 * 100, MAX_DELIVERIES_PER_COMMIT // 100),
        (1, MAX_DELIVERIES_PER_COMMIT, 1),
        (1, 5_000, 1),
    ],
)
def test_the_next_turn_makes_no_more_deliveries_than_one_commit_may(
    events: int, deliveries: int, next_time: int
) -> None:
    limits = FanOutLimits()
    limits.record("env_a", events, deliveries)
    assert limits == {"env_a": next_time}
    per_event = max(1, deliveries // events)
    assert next_time == 1 or next_time * per_event <= MAX_DELIVERIES_PER_COMMIT


def test_of_an_environment_that_is_not_known_few_are_taken() -> None:
    assert FanOutLimits().unknown * 100 <= MAX_DELIVERIES_PER_COMMIT


def test_what_is_remembered_is_bounded() -> None:
    limits = FanOutLimits()
    for number in range(MAX_REMEMBERED_LANES + 1):
        limits.record(f"env_{number}", 1, 1)
    assert len(limits) == 1
