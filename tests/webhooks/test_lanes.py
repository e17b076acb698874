"""How much an endpoint may have under way."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from payments_core.webhooks.dispatch.endpoint_concurrency import (
    MAX_CONCURRENCY,
    MAX_CONCURRENCY_PER_HOST,
    MAX_REMEMBERED_ENDPOINTS,
    SLOW_AFTER_S,
    EndpointConcurrency,
    Target,
)

QUICK, SLOW = SLOW_AFTER_S / 10, SLOW_AFTER_S * 2


def to(lane: str, environment_id: str | None = None, host: str | None = None) -> Target:
    """A lane; unless it is said, of an environment of its own and with a host of its own."""
    return Target(lane, environment_id or f"env of {lane}", host or f"{lane}.example")


def limit(lanes: EndpointConcurrency, lane: str) -> int:
    return lanes.limit_lanes()[lane]


def start_all(lanes: EndpointConcurrency, targets: Iterable[Target]) -> int:
    """Start what may start, and say how many did."""
    began = 0
    for target in targets:
        if lanes.may_start(target):
            lanes.record_start(target)
            began += 1
    return began


def made(lanes: EndpointConcurrency, lane: str, took_s: float, **more: str) -> None:
    lanes.record_start(to(lane, **more))
    lanes.record_end(lane, took_s)


def test_a_quick_endpoint_may_have_more_each_time_and_a_slow_one_half() -> None:
    lanes = EndpointConcurrency(64)
    seen = []
    for took_s in [QUICK] * 7 + [SLOW] * 5 + [QUICK] * 2:
        made(lanes, "a", took_s)
        seen.append(limit(lanes, "a"))
    assert seen == [2, 3, 4, 5, 6, 7, 8, 4, 2, 1, 1, 1, 2, 3]


def test_no_endpoint_has_more_than_the_most() -> None:
    lanes = EndpointConcurrency(64)
    for _ in range(100):
        made(lanes, "a", QUICK)
    assert limit(lanes, "a") == MAX_CONCURRENCY


def test_an_endpoint_that_has_not_shown_what_it_is_stays_new() -> None:
    lanes = EndpointConcurrency(64)
    assert lanes.limit_lanes() == {}
    lanes.record_start(to("a"))
    assert (lanes.pace("a"), limit(lanes, "a")) == ("new", 1)


@pytest.mark.parametrize("at_once", [4, 8, 64])
def test_new_endpoints_share_a_quarter_of_everything(at_once: int) -> None:
    lanes = EndpointConcurrency(at_once)
    made(lanes, "quick", QUICK)
    began = 0
    while lanes.may_start(to(f"new {began}")):
        lanes.record_start(to(f"new {began}"))
        began += 1
    assert began == at_once // 4
    assert lanes.may_start(to("quick"))
    lanes.record_end("new 0", QUICK)
    assert lanes.may_start(to("another"))
    assert lanes.may_start(to("new 0"))


@pytest.mark.parametrize("spare", [0, 5])
def test_however_many_turn_out_to_hang_the_quick_have_a_quarter(spare: int) -> None:
    lanes = EndpointConcurrency(8, spare)
    made(lanes, "quick", QUICK)
    began = 0
    for _ in range(20):  # each time, the newest turn out to hang
        while lanes.may_start(to(f"new {began}")):
            lanes.record_start(to(f"new {began}"))
            lanes.mark_slow(f"new {began}")
            began += 1
    assert began == 6 + spare
    assert lanes.may_start(to("quick"))


def test_quick_ones_have_all_their_slots_until_one_lags() -> None:
    lanes = EndpointConcurrency(4)
    names = [f"quick {number}" for number in range(6)]
    for name in names * 8:
        made(lanes, name, QUICK)
    for name in names * (MAX_CONCURRENCY - 1):
        assert lanes.may_start(to(name))
        lanes.record_start(to(name))
    lanes.mark_slow(names[0])
    assert [lanes.may_start(to(name)) for name in names] == [False] + [True] * 5


def test_slow_endpoints_share_a_quarter_and_then_have_no_slots() -> None:
    lanes = EndpointConcurrency(8)
    for name in ("a", "b", "c", "quick"):
        made(lanes, name, SLOW if name != "quick" else QUICK)
    lanes.record_start(to("a"))
    assert (limit(lanes, "b"), lanes.may_start(to("b"))) == (1, True)
    lanes.record_start(to("b"))
    assert (limit(lanes, "c"), lanes.may_start(to("c"))) == (0, False)
    assert (limit(lanes, "quick"), lanes.may_start(to("quick"))) == (2, True)
    assert lanes.may_start(to("new"))


def test_an_environment_has_no_slots_of_a_pace_while_any_of_its_own_waits() -> None:
    lanes = EndpointConcurrency(64)
    for env in ("ours", "theirs"):
        made(lanes, f"slow {env}", SLOW, environment_id=env)
        made(lanes, f"quick {env}", QUICK, environment_id=env)
    lanes.record_waiting(to("slow ours", "ours"))
    assert lanes.limit_lanes() == {
        "slow ours": 0, "quick ours": 2, "slow theirs": 1, "quick theirs": 2,
    }  # fmt: skip


# Between tenants.


@pytest.mark.parametrize("pace", ["new", "slow"])
def test_an_environment_has_half_of_what_its_pace_has(pace: str) -> None:
    lanes = EndpointConcurrency(64)
    if pace == "slow":
        for n in range(100):
            made(lanes, str(n), SLOW, environment_id="attacker")
            made(lanes, f"neighbour {n}", SLOW, environment_id="neighbour")
    assert start_all(lanes, [to(str(n), "attacker") for n in range(100)]) == 8
    assert lanes.may_start(to("neighbour 1", "neighbour"))
    assert start_all(lanes, [to(f"neighbour {n}", "neighbour") for n in range(100)]) == 8


def test_quick_endpoints_of_one_environment_leave_a_quarter_to_others() -> None:
    lanes = EndpointConcurrency(64)
    names = [str(n) for n in range(100)]
    for name in names * 8:
        made(lanes, name, QUICK, environment_id="busy")
    assert start_all(lanes, [to(name, "busy") for name in names]) == 48
    assert set(lanes.limit_lanes().values()) == {0}
    assert lanes.may_start(to("neighbour", "neighbour"))


def test_blocked_attempts_of_one_environment_take_half_of_the_spare_senders() -> None:
    lanes = EndpointConcurrency(64, 20)
    began = 0
    for _ in range(20):  # each time, all that began turn out to hang
        names = [f"{began + n}" for n in range(100)]
        began += start_all(lanes, [to(name, "attacker") for name in names])
        for name in list(lanes._busy):
            lanes.mark_slow(name)
    assert began == 10 + 16  # beyond ten that are blocked, each counts as a slow one
    assert start_all(lanes, [to(f"neighbour {n}", "neighbour") for n in range(100)]) == 8


def test_one_host_gets_few_at_a_time_however_many_endpoints_name_it() -> None:
    lanes = EndpointConcurrency(64)
    victims = [to(str(n), "attacker", "victim.example") for n in range(100)]
    for target in victims * 8:
        lanes.record_start(target)
        lanes.record_end(target.lane, QUICK)
    assert start_all(lanes, victims) == MAX_CONCURRENCY_PER_HOST
    assert not lanes.may_start(victims[-1])
    assert lanes.may_start(to("elsewhere", "attacker"))
    assert lanes.may_start(to("other", "neighbour", "victim.example"))


def test_what_was_claimed_without_room_is_not_claimed_again_until_there_is_room() -> None:
    lanes = EndpointConcurrency(64)
    targets = [to(str(n), "busy") for n in range(100)]
    assert start_all(lanes, targets) == 8
    for target in targets:
        lanes.remember(target)
    assert sum(lanes.limit_lanes().values()) == 0
    for n in range(3):
        lanes.record_end(str(n), None)
    limits = lanes.limit_lanes()
    assert sum(limits.values()) == 3


def test_what_was_not_sent_says_nothing_of_the_endpoint() -> None:
    lanes = EndpointConcurrency(64)
    made(lanes, "a", SLOW)
    lanes.record_start(to("a"))
    lanes.record_end("a", None)
    assert limit(lanes, "a") == 1
    lanes.record_start(to("a"))
    lanes.record_end("a", QUICK)
    assert limit(lanes, "a") == 2


def test_one_that_hangs_is_slow_before_its_attempt_ends() -> None:
    lanes = EndpointConcurrency(64)
    for _ in range(3):
        made(lanes, "a", QUICK)
    for name in ("a", "a"):
        lanes.record_start(to(name))
    lanes.mark_slow("a")
    assert not lanes.may_start(to("a"))
    lanes.record_end("a", SLOW)
    assert limit(lanes, "a") == 2
    lanes.record_end("a", QUICK)
    assert limit(lanes, "a") == 3  # it has come back


def test_what_was_not_used_for_longest_is_forgotten_and_nothing_under_way() -> None:
    lanes = EndpointConcurrency(8)
    lanes.record_start(to("busy"))
    for n in range(MAX_REMEMBERED_ENDPOINTS + 5):
        made(lanes, str(n), QUICK)
    limits = lanes.limit_lanes()
    assert len(limits) == MAX_REMEMBERED_ENDPOINTS
    assert "0" not in limits
    lanes.record_end("busy", QUICK)
    assert limit(lanes, "busy") == 2
