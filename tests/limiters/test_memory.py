"""The limiter in memory: what bounds it, and what it forgets."""

from __future__ import annotations

import os
import threading
import tracemalloc

import pytest

from payments_core.clock import HOUR, MINUTE, SECOND
from payments_core.limiters.memory import (
    KEPT_WINDOWS,
    MAX_KEYS,
    MIN_COUNTERS_FREED,
    SHARED_COUNTERS,
    MemoryLimiter,
)
from payments_core.limiters.port import PolicyCheck, PolicyState

START = 500_000 * HOUR
CROWD = 50


def count(limiter: MemoryLimiter, policy_check: PolicyCheck, now: int = START) -> PolicyState:
    (policy_state,) = limiter.check([policy_check], now)
    return policy_state


def crowded(limiter: MemoryLimiter, now: int = START) -> None:
    """Fill a window with strangers."""
    for number in range(CROWD):
        count(limiter, PolicyCheck(f"stranger:{number}", 1, MINUTE), now)


def test_a_million_addresses_do_not_grow_it_without_end() -> None:
    limiter = MemoryLimiter()
    for number in range(1_000_000):
        count(limiter, PolicyCheck(f"ip:{number}", 500, MINUTE))
    assert limiter.size() == MAX_KEYS + SHARED_COUNTERS


def test_a_window_of_a_flood_takes_twenty_megabytes() -> None:
    limiter = MemoryLimiter()
    tracemalloc.start()
    try:
        for number in range(MAX_KEYS + SHARED_COUNTERS):
            count(limiter, PolicyCheck(f"ip:203.0.113.{number}", 500, MINUTE))
        used, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert used < 20_000_000


def test_beyond_its_capacity_a_flood_never_gets_a_key_one_too_many() -> None:
    limiter = MemoryLimiter(capacity=CROWD)
    known, late = PolicyCheck("known", 3, MINUTE), PolicyCheck("late", 3, MINUTE)
    count(limiter, known)
    crowded(limiter)
    assert [count(limiter, known).admitted for _ in range(3)] == [True, True, False]
    assert [count(limiter, late).admitted for _ in range(4)] == [True, True, True, False]
    assert count(limiter, late, START + MINUTE).remaining == 2


def test_keys_that_share_a_counter_use_it_up_together() -> None:
    limiter = MemoryLimiter(capacity=CROWD)
    crowded(limiter)
    keys: dict[int, str] = {}
    number = 0
    while (
        first := keys.setdefault(hash(f"k{number}") % SHARED_COUNTERS, f"k{number}")
    ) == f"k{number}":
        number += 1
    assert count(limiter, PolicyCheck(first, 1, MINUTE)).admitted
    assert not count(limiter, PolicyCheck(f"k{number}", 1, MINUTE)).admitted


def test_a_crowd_of_blocks_is_bounded_and_none_is_lost() -> None:
    limiter = MemoryLimiter(capacity=CROWD)
    policy_checks = [
        PolicyCheck(f"abuse:{number}", 0, MINUTE, block_ms=HOUR) for number in range(CROWD * 3)
    ]
    for policy_check in policy_checks:
        assert not count(limiter, policy_check).admitted
    later = START + HOUR - SECOND
    assert not any(
        count(limiter, PolicyCheck(policy_check.key, 9, MINUTE, 0), later).admitted
        for policy_check in policy_checks
    )
    again = PolicyCheck("abuse:again", 0, MINUTE, block_ms=HOUR)
    for number in range(CROWD * 3):  # as many blocks again, after the first have ended
        count(limiter, again, START + HOUR + number * 2 * HOUR)
    assert limiter.size() < CROWD


def test_expired_counters_are_freed_a_few_at_each_call() -> None:
    limiter = MemoryLimiter()
    crowd = 10 * MIN_COUNTERS_FREED
    for number in range(crowd):
        count(limiter, PolicyCheck(f"ip:{number}", 5, MINUTE))
    regular = PolicyCheck("regular", 1_000, MINUTE)
    for window in range(1, KEPT_WINDOWS + 1):
        count(limiter, regular, START + window * MINUTE)
    freed = []
    while (before := limiter.size()) > KEPT_WINDOWS:
        count(limiter, regular, START + KEPT_WINDOWS * MINUTE)
        freed.append(before - limiter.size())
    assert len(freed) <= crowd // MIN_COUNTERS_FREED + 1
    assert max(freed) <= MIN_COUNTERS_FREED + 1


def test_a_quiet_limiter_holds_only_the_windows_it_keeps() -> None:
    limiter = MemoryLimiter()
    for window in range(1_000):
        count(limiter, PolicyCheck("regular", 5, MINUTE), START + window * MINUTE)
    assert limiter.size() <= KEPT_WINDOWS + 1


def test_a_window_that_was_forgotten_is_refused_until_one_that_was_not() -> None:
    limiter, policy_check = MemoryLimiter(), PolicyCheck("key", 5, MINUTE)
    for window in range(10):
        count(limiter, policy_check, START + window * MINUTE)
    first_kept = START + (10 - KEPT_WINDOWS) * MINUTE
    assert count(limiter, policy_check, START + 2 * MINUTE) == PolicyState(False, 5, 0, first_kept)
    assert count(limiter, policy_check, first_kept) == PolicyState(True, 5, 3, first_kept + MINUTE)


def test_a_refusal_of_a_forgotten_window_says_when_a_block_ends() -> None:
    limiter = MemoryLimiter()
    for window in range(10):
        count(limiter, PolicyCheck("key", 1, MINUTE, 2, HOUR), START + window * MINUTE)
    policy_state = count(limiter, PolicyCheck("key", 1, MINUTE, 0), START)
    assert policy_state == PolicyState(False, 1, 0, START + HOUR)


def test_a_clock_that_was_ahead_and_is_set_right_is_served_at_once() -> None:
    limiter, policy_check = MemoryLimiter(), PolicyCheck("key", 1, MINUTE)
    for window in (*range(10), *range(1_440, 1_450), *range(10, 30)):
        assert count(limiter, policy_check, START + window * MINUTE).admitted
    for window in (*range(25), *range(1_440, 1_450)):
        assert not count(limiter, policy_check, START + window * MINUTE).admitted
    assert count(limiter, policy_check, START + 700 * MINUTE).admitted


def test_a_window_that_was_never_open_is_not_forgotten() -> None:
    limiter, policy_check = MemoryLimiter(), PolicyCheck("key", 1, MINUTE)
    for window in range(0, 20, 2):
        count(limiter, policy_check, START + window * MINUTE)
    assert [count(limiter, policy_check, START + at * MINUTE).admitted for at in (4, 5, 5)] == [
        False,
        True,
        False,
    ]


def test_windows_far_apart_are_remembered_in_few_words_and_never_wrongly() -> None:
    limiter, policy_check = MemoryLimiter(), PolicyCheck("key", 1, MINUTE)
    opened = [window * window for window in range(200)]
    for window in opened:
        assert count(limiter, policy_check, START + window * MINUTE).admitted
    for window in opened:
        assert not count(limiter, policy_check, START + window * MINUTE).admitted


def test_a_look_opens_no_window() -> None:
    limiter = MemoryLimiter()
    for window in range(10):
        count(limiter, PolicyCheck("key", 1, MINUTE, 0), START + window * MINUTE)
    assert limiter.size() == 0
    assert count(limiter, PolicyCheck("key", 1, MINUTE)).admitted


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork.*:DeprecationWarning")
def test_the_child_of_a_fork_does_not_wait_for_the_parents_threads() -> None:
    limiter, policy_check = MemoryLimiter(), PolicyCheck("key", 2, MINUTE)
    count(limiter, policy_check)
    entered, leave = threading.Event(), threading.Event()

    class Slow(list[PolicyCheck]):
        def __len__(self) -> int:  # read while the lock is held
            entered.set()
            leave.wait(30)
            return 1

    for window in range(KEPT_WINDOWS + 1):  # something has expired, so that the length is asked for
        count(limiter, PolicyCheck("other", 1, MINUTE), START + window * MINUTE)
    holder = threading.Thread(
        target=limiter.check, args=(Slow([policy_check]), START + KEPT_WINDOWS * MINUTE)
    )
    holder.start()
    entered.wait(30)
    child = os.fork()
    if child == 0:
        os._exit(0 if count(limiter, policy_check, START + KEPT_WINDOWS * MINUTE).admitted else 1)
    try:
        assert os.waitpid(child, 0)[1] == 0
    finally:
        leave.set()
        holder.join()


@pytest.mark.parametrize("number", ["limit", "window_ms", "block_ms"])
def test_an_ask_with_a_number_below_its_least_is_refused(number: str) -> None:
    numbers = {"limit": 1, "window_ms": 1, "cost": 1, "block_ms": 0, number: -1}
    with pytest.raises(ValueError, match="at least 0"):
        PolicyCheck("key", **numbers)
    with pytest.raises(ValueError, match="at least 1 ms"):
        PolicyCheck("key", 1, 0)
