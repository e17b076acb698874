"""Which senders are read with the heads, and how long a reading counts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from payments_core.chains.gas import (
    MAX_AGE_MS,
    MAX_FOLLOWED,
    MAX_LISTED_AGE_MS,
    MAX_READ_AT_ONCE,
    READ_AGAIN_MS,
    GasReadings,
)


class Readings(GasReadings[int]):
    """Readings at a time that a test sets."""

    def __init__(self) -> None:
        self.now = 1_000_000
        super().__init__(lambda: self.now)


def names(count: int) -> list[str]:
    return [f"0x{number:04}" for number in range(count)]


def test_nobody_is_read_who_is_not_followed() -> None:
    readings = Readings()
    assert readings.choose_due() == ()
    readings.keep({"0x1": 5})
    assert readings.find("0x1") is None
    assert readings.list_recent() == {}


def test_a_sender_is_read_again_when_its_reading_is_old() -> None:
    readings = Readings()
    readings.follow(["0x1"])
    assert readings.choose_due() == ("0x1",)
    readings.keep({"0x1": 5})
    readings.now += READ_AGAIN_MS - 1
    readings.follow(["0x1"])
    assert readings.choose_due() == ()
    readings.now += 1
    assert readings.choose_due() == ("0x1",)


def test_a_sender_that_cannot_be_read_is_not_asked_for_with_every_heads() -> None:
    readings = Readings()
    readings.follow(["0x1"])
    assert readings.choose_due() == ("0x1",)
    assert readings.choose_due() == ()


@pytest.mark.parametrize(
    ("age_ms", "refuses", "is_listed"),
    [
        (0, True, True),
        (MAX_AGE_MS, True, True),
        (MAX_AGE_MS + 1, False, True),
        (MAX_LISTED_AGE_MS, False, True),
        (MAX_LISTED_AGE_MS + 1, False, False),
        (-1, False, False),  # the clock has stepped back
    ],
)
def test_an_old_reading_refuses_nothing(age_ms: int, refuses: bool, is_listed: bool) -> None:
    readings = Readings()
    readings.follow(["0x1"])
    readings.choose_due()
    readings.keep({"0x1": 0})
    readings.now += age_ms
    assert readings.find("0x1") == (0 if refuses else None)
    assert readings.list_recent() == ({"0x1": 0} if is_listed else {})


def test_a_reading_is_as_old_as_its_question() -> None:
    readings = Readings()
    readings.follow(["0x1"])
    readings.choose_due()
    readings.now += MAX_AGE_MS + 1  # the node took so long
    readings.keep({"0x1": 0})
    assert readings.find("0x1") is None


def test_a_clock_that_steps_back_reads_all_again() -> None:
    readings = Readings()
    readings.follow(["0x1"])
    readings.choose_due()
    readings.now -= 1
    assert readings.choose_due() == ("0x1",)


def test_many_senders_take_turns() -> None:
    readings = Readings()
    followed = names(2 * MAX_READ_AT_ONCE + 1)
    readings.follow(followed)
    turns = [readings.choose_due() for _ in range(4)]
    assert [len(turn) for turn in turns] == [MAX_READ_AT_ONCE, MAX_READ_AT_ONCE, 1, 0]
    assert sorted(sender for turn in turns for sender in turn) == followed


def test_of_too_many_those_that_were_asked_for_last_are_followed() -> None:
    readings = Readings()
    readings.follow(["old", "kept"])
    readings.choose_due()
    readings.keep({"old": 0, "kept": 1})
    readings.follow(names(MAX_FOLLOWED - 2))
    readings.follow(["kept", "new"])
    assert readings.find("old") is None
    assert readings.find("kept") == 1


def test_a_forked_child_has_a_lock_of_its_own() -> None:
    readings = Readings()
    readings.follow(["0x1"])
    readings._lock.acquire()  # by a thread of the parent
    readings.reset_after_fork()
    assert readings.choose_due() == ("0x1",)


@given(st.lists(st.tuples(st.sampled_from(names(40)), st.integers(0, 2 * READ_AGAIN_MS))))
def test_no_sender_is_asked_for_twice_within_ten_seconds(
    steps: list[tuple[str, int]],
) -> None:
    readings, asked = Readings(), dict[str, int]()
    for sender, passed_ms in steps:
        readings.now += passed_ms
        readings.follow([sender])
        for chosen in readings.choose_due():
            assert readings.now - asked.get(chosen, -READ_AGAIN_MS) >= READ_AGAIN_MS
            asked[chosen] = readings.now
