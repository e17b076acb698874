"""How much an endpoint may have under way."""

from __future__ import annotations

import pytest

from payments_core.webhooks.dispatch.endpoint_concurrency import (
    MAX_CONCURRENCY,
    MAX_REMEMBERED_ENDPOINTS,
    SLOW_AFTER_S,
    EndpointConcurrency,
)

QUICK, SLOW = SLOW_AFTER_S / 10, SLOW_AFTER_S * 2


def made(lanes: EndpointConcurrency, lane: str, took_s: float) -> None:
    lanes.record_start(lane)
    lanes.record_end(lane, took_s)


def test_a_quick_endpoint_may_have_more_each_time_and_a_slow_one_half() -> None:
    lanes = EndpointConcurrency(64)
    seen = []
    for took_s in [QUICK] * 7 + [SLOW] * 5 + [QUICK] * 2:
        made(lanes, "a", took_s)
        seen.append(lanes["a"])
    assert seen == [2, 3, 4, 5, 6, 7, 8, 4, 2, 1, 1, 1, 2, 3]


def test_no_endpoint_has_more_than_the_most() -> None:
    lanes = EndpointConcurrency(64)
    for _ in range(100):
        made(lanes, "a", QUICK)
    assert lanes["a"] == MAX_CONCURRENCY


def test_an_unknown_endpoint_has_what_the_unknown_have() -> None:
    lanes = EndpointConcurrency(64)
    assert "a" not in lanes
    lanes.record_start("a")
    assert "a" not in lanes  # it has not shown what it is
    assert lanes.new_endpoint_limit == 1
    lanes.waiting = {"new": 1}
    assert lanes.new_endpoint_limit == 0


@pytest.mark.parametrize("at_once", [4, 8, 64])
def test_new_endpoints_share_a_quarter_of_everything(at_once: int) -> None:
    lanes = EndpointConcurrency(at_once)
    made(lanes, "quick", QUICK)
    began = 0
    while lanes.may_start(f"new {began}"):
        lanes.record_start(f"new {began}")
        began += 1
    assert began == at_once // 4
    assert lanes.may_start("quick")
    lanes.record_end("new 0", QUICK)
    assert lanes.may_start("another")
    assert lanes.may_start("new 0")


@pytest.mark.parametrize("spare", [0, 5])
def test_however_many_turn_out_to_hang_the_quick_have_a_quarter(spare: int) -> None:
    lanes = EndpointConcurrency(8, spare)
    made(lanes, "quick", QUICK)
    began = 0
    for _ in range(20):  # each time, the newest turn out to hang
        while lanes.may_start(f"new {began}"):
            lanes.record_start(f"new {began}")
            lanes.mark_slow(f"new {began}")
            began += 1
    assert began == 6 + spare
    assert lanes.may_start("quick")


def test_quick_ones_have_all_their_slots_until_one_lags() -> None:
    lanes = EndpointConcurrency(4)
    names = [f"quick {number}" for number in range(6)]
    for name in names * 8:
        made(lanes, name, QUICK)
    for name in names * MAX_CONCURRENCY:
        assert lanes.may_start(name)
        lanes.record_start(name)
    lanes.mark_slow(names[0])
    assert [lanes.may_start(name) for name in names] == [False] + [True] * 5


def test_slow_endpoints_share_a_quarter_and_then_have_no_slots() -> None:
    lanes = EndpointConcurrency(8)
    for name in ("a", "b", "c", "quick"):
        made(lanes, name, SLOW if name != "quick" else QUICK)
    lanes.record_start("a")
    assert (lanes["b"], lanes.may_start("b")) == (1, True)
    lanes.record_start("b")
    assert (lanes["c"], lanes.may_start("c")) == (0, False)
    assert (lanes["quick"], lanes.may_start("quick")) == (2, True)
    assert lanes.may_start("new")


def test_slow_endpoints_have_no_slots_while_any_waits() -> None:
    lanes = EndpointConcurrency(64)
    made(lanes, "slow", SLOW)
    made(lanes, "quick", QUICK)
    lanes.waiting = {"slow": 1}
    assert (lanes["slow"], lanes["quick"], lanes.new_endpoint_limit) == (0, 2, 1)
    lanes.waiting = {"new": 1}
    assert (lanes["slow"], lanes["quick"], lanes.new_endpoint_limit) == (1, 2, 0)


def test_what_was_not_sent_says_nothing_of_the_endpoint() -> None:
    lanes = EndpointConcurrency(64)
    made(lanes, "a", SLOW)
    lanes.record_start("a")
    lanes.record_end("a", None)
    assert lanes["a"] == 1
    lanes.record_start("a")
    lanes.record_end("a", QUICK)
    assert lanes["a"] == 2


def test_one_that_hangs_is_slow_before_its_attempt_ends() -> None:
    lanes = EndpointConcurrency(8)
    for _ in range(3):
        made(lanes, "a", QUICK)
    for name in ("a", "a"):
        lanes.record_start(name)
    lanes.mark_slow("a")
    assert not lanes.may_start("a")
    lanes.record_end("a", SLOW)
    assert lanes["a"] == 2
    lanes.record_end("a", QUICK)
    assert lanes["a"] == 3  # it has come back


def test_what_was_not_used_for_longest_is_forgotten_and_nothing_under_way() -> None:
    lanes = EndpointConcurrency(8)
    lanes.record_start("busy")
    for n in range(MAX_REMEMBERED_ENDPOINTS + 5):
        made(lanes, str(n), QUICK)
    assert len(lanes) == MAX_REMEMBERED_ENDPOINTS - 1
    assert "0" not in lanes
    lanes.record_end("busy", QUICK)
    assert lanes["busy"] == 2
