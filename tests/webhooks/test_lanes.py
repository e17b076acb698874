"""How much an endpoint may have under way."""

from __future__ import annotations

import pytest

from payments_core.webhooks.lanes import MOST_REMEMBERED, MOST_SLOTS, SLOW_S, Lanes

QUICK, SLOW = SLOW_S / 10, SLOW_S * 2


def made(lanes: Lanes, lane: str, took_s: float) -> None:
    lanes.began(lane)
    lanes.ended(lane, took_s)


def test_a_quick_endpoint_may_have_more_each_time_and_a_slow_one_half() -> None:
    lanes = Lanes(64)
    seen = []
    for took_s in [QUICK] * 7 + [SLOW] * 5 + [QUICK] * 2:
        made(lanes, "a", took_s)
        seen.append(lanes["a"])
    assert seen == [2, 3, 4, 5, 6, 7, 8, 4, 2, 1, 1, 1, 2, 3]


def test_no_endpoint_has_more_than_the_most() -> None:
    lanes = Lanes(64)
    for _ in range(100):
        made(lanes, "a", QUICK)
    assert lanes["a"] == MOST_SLOTS


def test_an_unknown_endpoint_has_what_the_unknown_have() -> None:
    lanes = Lanes(64)
    assert "a" not in lanes
    lanes.began("a")
    assert "a" not in lanes  # it has not shown what it is
    assert lanes.slots_of_new == 1
    lanes.waiting = {"new": 1}
    assert lanes.slots_of_new == 0


@pytest.mark.parametrize("at_once", [4, 8, 64])
def test_new_endpoints_share_a_quarter_of_everything(at_once: int) -> None:
    lanes = Lanes(at_once)
    made(lanes, "quick", QUICK)
    began = 0
    while lanes.may_begin(f"new {began}"):
        lanes.began(f"new {began}")
        began += 1
    assert began == at_once // 4
    assert lanes.may_begin("quick")
    lanes.ended("new 0", QUICK)
    assert lanes.may_begin("another")
    assert lanes.may_begin("new 0")


@pytest.mark.parametrize("spare", [0, 5])
def test_however_many_turn_out_to_hang_the_quick_have_a_quarter(spare: int) -> None:
    lanes = Lanes(8, spare)
    made(lanes, "quick", QUICK)
    began = 0
    for _ in range(20):  # each time, the newest turn out to hang
        while lanes.may_begin(f"new {began}"):
            lanes.began(f"new {began}")
            lanes.lags(f"new {began}")
            began += 1
    assert began == 6 + spare
    assert lanes.may_begin("quick")


def test_quick_ones_have_all_their_slots_until_one_lags() -> None:
    lanes = Lanes(4)
    names = [f"quick {number}" for number in range(6)]
    for name in names * 8:
        made(lanes, name, QUICK)
    for name in names * MOST_SLOTS:
        assert lanes.may_begin(name)
        lanes.began(name)
    lanes.lags(names[0])
    assert [lanes.may_begin(name) for name in names] == [False] + [True] * 5


def test_slow_endpoints_share_a_quarter_and_then_have_no_slots() -> None:
    lanes = Lanes(8)
    for name in ("a", "b", "c", "quick"):
        made(lanes, name, SLOW if name != "quick" else QUICK)
    lanes.began("a")
    assert (lanes["b"], lanes.may_begin("b")) == (1, True)
    lanes.began("b")
    assert (lanes["c"], lanes.may_begin("c")) == (0, False)
    assert (lanes["quick"], lanes.may_begin("quick")) == (2, True)
    assert lanes.may_begin("new")


def test_slow_endpoints_have_no_slots_while_any_waits() -> None:
    lanes = Lanes(64)
    made(lanes, "slow", SLOW)
    made(lanes, "quick", QUICK)
    lanes.waiting = {"slow": 1}
    assert (lanes["slow"], lanes["quick"], lanes.slots_of_new) == (0, 2, 1)
    lanes.waiting = {"new": 1}
    assert (lanes["slow"], lanes["quick"], lanes.slots_of_new) == (1, 2, 0)


def test_what_was_not_sent_says_nothing_of_the_endpoint() -> None:
    lanes = Lanes(64)
    made(lanes, "a", SLOW)
    lanes.began("a")
    lanes.ended("a", None)
    assert lanes["a"] == 1
    lanes.began("a")
    lanes.ended("a", QUICK)
    assert lanes["a"] == 2


def test_one_that_hangs_is_slow_before_its_attempt_ends() -> None:
    lanes = Lanes(8)
    for _ in range(3):
        made(lanes, "a", QUICK)
    for name in ("a", "a"):
        lanes.began(name)
    lanes.lags("a")
    assert not lanes.may_begin("a")
    lanes.ended("a", SLOW)
    assert lanes["a"] == 2
    lanes.ended("a", QUICK)
    assert lanes["a"] == 3  # it has come back


def test_what_was_not_used_for_longest_is_forgotten_and_nothing_under_way() -> None:
    lanes = Lanes(8)
    lanes.began("busy")
    for n in range(MOST_REMEMBERED + 5):
        made(lanes, str(n), QUICK)
    assert len(lanes) == MOST_REMEMBERED - 1
    assert "0" not in lanes
    lanes.ended("busy", QUICK)
    assert lanes["busy"] == 2
