"""Counting within one window: how much is admitted, and which requests count."""

from __future__ import annotations

from itertools import product

from msgspec.structs import replace

from payments_core.clock import MINUTE, SECOND
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

ODD_KEYS = (
    "a", "A", "a:", ":a", "a:1", "a:1:1", "1", "1:a", "a a", "a\n", "a\x00", "a\x00b", "{a}",
    "{a}b", "á", "a\u0301", "😀", "block:a", "60000:a", f"{START // MINUTE}:a", "a" * 500,
    "a" * 501, "", " ", "ip:::1", "ip:2001:db8::1", "%61", "*",
)  # fmt: skip
"""Distinct keys, of which careless joining, folding or truncation would merge some."""


class CountingChecks(Harness):
    """A window admits its limit, and not one more."""

    def test_the_limit_is_admitted_and_not_one_more(self) -> None:
        limiter = self.open_handle()
        for limit in (0, 1, 2, 7):
            policy_check = new_check(f"limit:{limit}", limit=limit)
            expected = [True] * limit + [False] * 3
            require_equal(
                check_repeatedly(limiter, policy_check, limit + 3), expected, f"limit {limit}"
            )

    def test_what_remains_counts_down_to_zero_and_stays_there(self) -> None:
        limiter = self.open_handle()
        left = [check_once(limiter, new_check()).remaining for _ in range(6)]
        require_equal(left, [2, 1, 0, 0, 0, 0], "remaining")

    def test_the_limit_is_returned_as_given(self) -> None:
        limiter = self.open_handle()
        for _ in range(5):
            require_state(check_once(limiter, new_check()), limit=3)

    def test_refused_requests_count_too(self) -> None:
        limiter = self.open_handle()
        check_once(limiter, new_check(cost=2))
        require_state(check_once(limiter, new_check(cost=5)), admitted=False, remaining=0)
        require_state(check_once(limiter, new_check()), admitted=False)
        require_state(check_once(limiter, new_check(limit=9)), admitted=True, remaining=0)

    def test_a_cost_is_counted_whole(self) -> None:
        limiter, policy_check = self.open_handle(), new_check(limit=10, cost=4)
        require_state(check_once(limiter, policy_check), admitted=True, remaining=6)
        require_state(check_once(limiter, policy_check), admitted=True, remaining=2)
        require_state(check_once(limiter, policy_check), admitted=False, remaining=0)

    def test_what_is_given_back_can_be_counted_again(self) -> None:
        limiter = self.open_handle()
        for _ in range(4):
            check_once(limiter, new_check())
        check_once(limiter, new_check(cost=-2))
        require_state(peek(limiter, new_check()), admitted=True, remaining=1)
        require_state(check_once(limiter, new_check()), admitted=True, remaining=0)
        require_state(check_once(limiter, new_check()), admitted=False)

    def test_no_more_is_given_back_than_was_counted(self) -> None:
        limiter = self.open_handle()
        check_once(limiter, new_check(cost=-5))
        require_state(peek(limiter, new_check()), admitted=True, remaining=3)
        check_once(limiter, new_check())
        check_once(limiter, new_check(cost=-5))
        require_state(peek(limiter, new_check()), admitted=True, remaining=3)
        require_state(check_once(limiter, new_check()), admitted=True, remaining=2)

    def test_a_peek_counts_nothing(self) -> None:
        limiter = self.open_handle()
        for _ in range(5):
            require_state(peek(limiter, new_check()), admitted=True, remaining=3)
        check_once(limiter, new_check())
        for _ in range(5):
            require_state(peek(limiter, new_check()), admitted=True, remaining=2)

    def test_a_peek_is_refused_only_beyond_the_limit(self) -> None:
        limiter = self.open_handle()
        exhaust(limiter, new_check())
        require_state(peek(limiter, new_check()), admitted=True, remaining=0)
        check_once(limiter, new_check())
        require_state(peek(limiter, new_check()), admitted=False, remaining=0)

    def test_each_check_is_counted_independently(self) -> None:
        limiter = self.open_handle()
        full, open_, empty = (
            new_check("full", limit=0),
            new_check("open"),
            new_check("empty", limit=1),
        )
        for policy_checks in ([full, open_], [open_, full], [full, open_, empty]):
            limiter.check(policy_checks, START)
        require_state(peek(limiter, open_), remaining=0)
        require_state(peek(limiter, empty), remaining=0)

    def test_the_states_are_in_the_order_of_the_checks(self) -> None:
        limiter = self.open_handle()
        policy_checks = [new_check(f"p:{limit}", limit=limit) for limit in (5, 0, 3, 1, 4, 2)]
        for asked in (policy_checks, policy_checks[::-1], policy_checks[::-1] + policy_checks):
            policy_states = limiter.check(asked, START)
            require_equal(
                [each.limit for each in policy_states], [each.limit for each in asked], "order"
            )
        require_equal(
            [each.remaining for each in limiter.check(policy_checks, START)],
            [0] * 6,
            "the remaining count",
        )

    def test_no_checks_give_no_states(self) -> None:
        require_equal(self.open_handle().check([], START), [], "a decision without a request")

    def test_a_key_twice_in_one_call_is_counted_twice(self) -> None:
        limiter = self.open_handle()
        policy_states = limiter.check([new_check(limit=1), new_check(limit=1)], START)
        require_equal([each.admitted for each in policy_states], [True, False], "admitted")

    def test_keys_do_not_share_a_counter(self) -> None:
        limiter = self.open_handle()
        policy_checks = [new_check(key, limit=1) for key in ODD_KEYS]
        for policy_check, policy_state in zip(
            policy_checks, limiter.check(policy_checks, START), strict=True
        ):
            assert policy_state.admitted, (
                f"{policy_check.key!r} must not share a counter with another key"
            )
        for policy_check, policy_state in zip(
            policy_checks, limiter.check(policy_checks, START), strict=True
        ):
            assert not policy_state.admitted, f"{policy_check.key!r} must have a counter"

    def test_windows_of_another_length_have_another_counter(self) -> None:
        limiter, lengths = self.open_handle(), (1, SECOND, 10 * SECOND, MINUTE, 10 * MINUTE)
        for length in lengths:
            policy_check = new_check(limit=1, window_ms=length)
            require_equal(
                check_repeatedly(limiter, policy_check, 2),
                [True, False],
                f"a window of {length} ms",
            )

    def test_the_limit_may_change_between_two_checks(self) -> None:
        limiter = self.open_handle()
        require_state(check_once(limiter, new_check(limit=3)), admitted=True, remaining=2)
        require_state(check_once(limiter, new_check(limit=1)), admitted=False, remaining=0)
        require_state(check_once(limiter, new_check(limit=9)), admitted=True, remaining=6)

    def test_large_limits_and_costs_are_exact(self) -> None:
        limiter, limit = self.open_handle(), 2**50
        require_state(
            check_once(limiter, new_check(limit=limit, cost=limit - 1)), admitted=True, remaining=1
        )
        require_state(check_once(limiter, new_check(limit=limit)), admitted=True, remaining=0)
        require_state(check_once(limiter, new_check(limit=limit)), admitted=False, remaining=0)

    def test_many_keys_each_have_their_counter(self) -> None:
        limiter = self.open_handle()
        policy_checks = [
            new_check(f"many:{group}:{one}", limit=2) for group, one in product(range(20), "ab")
        ]
        for _ in range(2):
            for policy_check in policy_checks:
                require_state(check_once(limiter, policy_check), admitted=True)
        for policy_check in policy_checks:
            require_state(check_once(limiter, policy_check), admitted=False)
            require_state(check_once(limiter, replace(policy_check, limit=4)), admitted=True)
