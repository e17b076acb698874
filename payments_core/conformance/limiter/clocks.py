"""Windows and clocks: the end of a window, and clocks that step back, jump and disagree."""

from __future__ import annotations

import random
from collections import Counter

from payments_core.clock import DAY, MINUTE, SECOND
from payments_core.conformance.limiter.harness import (
    START,
    Harness,
    check_once,
    check_repeatedly,
    exhaust,
    new_check,
    peek,
    require_equal,
    require_state,
)


class ClockChecks(Harness):
    """A window is a multiple of its length, numbered by the caller's `now`."""

    def test_a_window_ends_where_its_multiple_does(self) -> None:
        limiter, policy_check = self.open_handle(), new_check(limit=2)
        late = START + MINUTE - 1
        require_equal(
            check_repeatedly(limiter, policy_check, 3, START + 1), [True, True, False], "early"
        )
        require_equal(
            check_repeatedly(limiter, policy_check, 1, late),
            [False],
            "a request in the last millisecond of the window",
        )
        require_equal(
            check_repeatedly(limiter, policy_check, 3, late + 1),
            [True, True, False],
            "a request in the next window",
        )

    def test_a_window_does_not_slide(self) -> None:
        limiter, policy_check = self.open_handle(), new_check()
        exhaust(limiter, policy_check, START + MINUTE - 1)
        exhaust(limiter, policy_check, START + MINUTE)
        require_state(check_once(limiter, policy_check, START + 2 * MINUTE - 1), admitted=False)

    def test_a_window_does_not_begin_with_its_first_request(self) -> None:
        limiter, policy_check = self.open_handle(), new_check()
        exhaust(limiter, policy_check, START + 50 * SECOND)
        require_state(check_once(limiter, policy_check, START + 59 * SECOND), admitted=False)
        require_state(
            check_once(limiter, policy_check, START + 61 * SECOND), admitted=True, remaining=2
        )

    def test_the_reset_is_when_the_window_ends(self) -> None:
        limiter = self.open_handle()
        for window_ms, into in ((MINUTE, 0), (MINUTE, MINUTE - 1), (7, 3), (DAY, 5)):
            now = START + into
            end = (now // window_ms + 1) * window_ms
            policy_check = new_check(limit=1, window_ms=window_ms)
            for _ in range(3):  # refused or not
                require_state(check_once(limiter, policy_check, now), reset_at=end)
            require_state(peek(limiter, policy_check, now), reset_at=end)

    def test_a_clock_may_leap_ahead(self) -> None:
        limiter, policy_check = self.open_handle(), new_check()
        for leap in (MINUTE, 2 * MINUTE, DAY, 400 * DAY):
            require_equal(
                check_repeatedly(limiter, policy_check, 4, START + leap),
                [True] * 3 + [False],
                f"{leap} ms ahead",
            )

    def test_a_clock_that_steps_back_finds_the_counter_as_it_left_it(self) -> None:
        limiter, policy_check = self.open_handle(), new_check()
        exhaust(limiter, policy_check, START)
        check_once(limiter, policy_check, START + MINUTE)
        require_state(check_once(limiter, policy_check, START + MINUTE - 1), admitted=False)
        require_state(peek(limiter, policy_check, START + MINUTE), remaining=2)
        exhaust(limiter, new_check(limit=2), START + 2 * MINUTE)
        require_state(check_once(limiter, policy_check, START + MINUTE), admitted=True, remaining=1)
        require_state(peek(limiter, policy_check, START + 2 * MINUTE), remaining=1)

    def test_a_clock_that_steps_back_frees_no_counter(self) -> None:
        limiter, policy_check = self.open_handle(), new_check()
        now = START + MINUTE
        exhaust(limiter, policy_check, now)
        for back in (1, SECOND, MINUTE):
            check_once(limiter, policy_check, now - back)
            require_state(check_once(limiter, policy_check, now), admitted=False)

    def test_clocks_a_little_apart_are_both_right(self) -> None:
        limiter, policy_check = self.open_handle(), new_check(limit=20)
        slow, fast = START + MINUTE - 1, START + MINUTE
        for left in range(19, -1, -1):
            require_state(check_once(limiter, policy_check, slow), admitted=True, remaining=left)
            require_state(check_once(limiter, policy_check, fast), admitted=True, remaining=left)
        for now in (slow, fast, slow, fast):
            require_state(check_once(limiter, policy_check, now), admitted=False)

    def test_no_window_ever_admits_more_however_the_clock_jumps(self) -> None:
        for seed in range(5):
            limiter, chance = self.open_handle(), random.Random(seed)
            policy_check = new_check(f"jumps:{seed}", limit=2, window_ms=SECOND)
            inside: Counter[int] = Counter()
            now = START
            for _ in range(300):
                now += chance.choice((0, 1, 300, 1_000, -300, -1_000, 5_000, -4_500))
                if check_once(limiter, policy_check, now).admitted:
                    inside[now // SECOND] += 1
            over = {window: number for window, number in inside.items() if number > 2}
            assert not over, f"windows that admitted more than 2: {over}"
