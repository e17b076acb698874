"""Counting within one window: how much is admitted, and what counts."""

from __future__ import annotations

from itertools import product

from msgspec.structs import replace

from payments_core.clock import MINUTE, SECOND
from payments_core.conformance.limiter.setting import (
    START,
    Setting,
    a_policy,
    admitted,
    count,
    fill,
    look,
    require,
    require_all,
)

ODD_KEYS = (
    "a", "A", "a:", ":a", "a:1", "a:1:1", "1", "1:a", "a a", "a\n", "a\x00", "a\x00b", "{a}",
    "{a}b", "á", "a\u0301", "😀", "block:a", "60000:a", f"{START // MINUTE}:a", "a" * 500,
    "a" * 501, "", " ", "ip:::1", "ip:2001:db8::1", "%61", "*",
)  # fmt: skip
"""Distinct, and such that careless joining, folding or cutting would let some of them meet."""


class CountingChecks(Setting):
    """A window admits its limit, and not one more."""

    def test_the_limit_is_admitted_and_not_one_more(self) -> None:
        limiter = self.start()
        for limit in (0, 1, 2, 7):
            ask = a_policy(f"limit:{limit}", limit=limit)
            expected = [True] * limit + [False] * 3
            require_all(admitted(limiter, ask, limit + 3), expected, f"limit {limit}")

    def test_what_remains_counts_down_to_zero_and_stays_there(self) -> None:
        limiter = self.start()
        left = [count(limiter, a_policy()).remaining for _ in range(6)]
        require_all(left, [2, 1, 0, 0, 0, 0], "remaining")

    def test_the_limit_is_told_as_it_was_asked(self) -> None:
        limiter = self.start()
        for _ in range(5):
            require(count(limiter, a_policy()), limit=3)

    def test_refused_requests_count_too(self) -> None:
        limiter = self.start()
        count(limiter, a_policy(cost=2))
        require(count(limiter, a_policy(cost=5)), admitted=False, remaining=0)
        require(count(limiter, a_policy()), admitted=False)
        require(count(limiter, a_policy(limit=9)), admitted=True, remaining=0)

    def test_a_cost_is_counted_whole(self) -> None:
        limiter, ask = self.start(), a_policy(limit=10, cost=4)
        require(count(limiter, ask), admitted=True, remaining=6)
        require(count(limiter, ask), admitted=True, remaining=2)
        require(count(limiter, ask), admitted=False, remaining=0)

    def test_a_look_counts_nothing(self) -> None:
        limiter = self.start()
        for _ in range(5):
            require(look(limiter, a_policy()), admitted=True, remaining=3)
        count(limiter, a_policy())
        for _ in range(5):
            require(look(limiter, a_policy()), admitted=True, remaining=2)

    def test_a_look_is_refused_only_beyond_the_limit(self) -> None:
        limiter = self.start()
        fill(limiter, a_policy())
        require(look(limiter, a_policy()), admitted=True, remaining=0)
        count(limiter, a_policy())
        require(look(limiter, a_policy()), admitted=False, remaining=0)

    def test_each_ask_is_counted_whatever_becomes_of_its_neighbours(self) -> None:
        limiter = self.start()
        full, open_, empty = a_policy("full", limit=0), a_policy("open"), a_policy("empty", limit=1)
        for asks in ([full, open_], [open_, full], [full, open_, empty]):
            limiter.check(asks, START)
        require(look(limiter, open_), remaining=0)
        require(look(limiter, empty), remaining=0)

    def test_the_answers_are_in_the_order_of_the_asks(self) -> None:
        limiter = self.start()
        asks = [a_policy(f"p:{limit}", limit=limit) for limit in (5, 0, 3, 1, 4, 2)]
        for asked in (asks, asks[::-1], asks[::-1] + asks):
            standings = limiter.check(asked, START)
            require_all([each.limit for each in standings], [each.limit for each in asked], "order")
        require_all(
            [each.remaining for each in limiter.check(asks, START)], [0] * 6, "what remains"
        )

    def test_no_ask_has_no_answer(self) -> None:
        require_all(self.start().check([], START), [], "no ask")

    def test_a_key_twice_in_one_call_is_counted_twice(self) -> None:
        limiter = self.start()
        standings = limiter.check([a_policy(limit=1), a_policy(limit=1)], START)
        require_all([each.admitted for each in standings], [True, False], "admitted")

    def test_keys_do_not_share_a_counter(self) -> None:
        limiter = self.start()
        asks = [a_policy(key, limit=1) for key in ODD_KEYS]
        for ask, standing in zip(asks, limiter.check(asks, START), strict=True):
            assert standing.admitted, f"{ask.key!r} shares a counter with another key"
        for ask, standing in zip(asks, limiter.check(asks, START), strict=True):
            assert not standing.admitted, f"{ask.key!r} has no counter"

    def test_windows_of_another_length_have_another_counter(self) -> None:
        limiter, lengths = self.start(), (1, SECOND, 10 * SECOND, MINUTE, 10 * MINUTE)
        for length in lengths:
            ask = a_policy(limit=1, window_ms=length)
            require_all(admitted(limiter, ask, 2), [True, False], f"a window of {length} ms")

    def test_the_limit_may_change_between_two_asks(self) -> None:
        limiter = self.start()
        require(count(limiter, a_policy(limit=3)), admitted=True, remaining=2)
        require(count(limiter, a_policy(limit=1)), admitted=False, remaining=0)
        require(count(limiter, a_policy(limit=9)), admitted=True, remaining=6)

    def test_large_limits_and_costs_are_exact(self) -> None:
        limiter, limit = self.start(), 2**50
        require(count(limiter, a_policy(limit=limit, cost=limit - 1)), admitted=True, remaining=1)
        require(count(limiter, a_policy(limit=limit)), admitted=True, remaining=0)
        require(count(limiter, a_policy(limit=limit)), admitted=False, remaining=0)

    def test_many_keys_each_have_their_counter(self) -> None:
        limiter = self.start()
        asks = [a_policy(f"many:{group}:{one}", limit=2) for group, one in product(range(20), "ab")]
        for _ in range(2):
            for ask in asks:
                require(count(limiter, ask), admitted=True)
        for ask in asks:
            require(count(limiter, ask), admitted=False)
            require(count(limiter, replace(ask, limit=4)), admitted=True)
