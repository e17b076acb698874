"""Blocks: beyond the limit a key is refused for longer than its window."""

from __future__ import annotations

from payments_core.clock import HOUR, MINUTE, SECOND
from payments_core.conformance.limiter.harness import (
    START,
    Harness,
    check_once,
    exhaust,
    new_check,
    peek,
    require_state,
)

ABUSE = new_check("abuse:192.0.2.1", limit=2, window_ms=10 * MINUTE, block_ms=HOUR)
EXCEEDED_AT = START + 5 * SECOND
BLOCK_ENDS_AT = EXCEEDED_AT + HOUR


class BlockChecks(Harness):
    """A block lasts from the request that passed the limit, for the requested time."""

    def test_a_block_begins_with_the_request_that_passes_the_limit(self) -> None:
        limiter = self.open_handle()
        exhaust(limiter, ABUSE)
        require_state(peek(limiter, ABUSE), admitted=True, remaining=0)
        passed = check_once(limiter, ABUSE, EXCEEDED_AT)
        require_state(passed, admitted=False, remaining=0, limit=2, reset_at=BLOCK_ENDS_AT)

    def test_a_block_outlasts_its_window_to_the_millisecond(self) -> None:
        limiter = self.open_handle()
        exhaust(limiter, ABUSE)
        check_once(limiter, ABUSE, EXCEEDED_AT)
        for now in (START + 10 * MINUTE, START + 35 * MINUTE, BLOCK_ENDS_AT - 1):
            require_state(
                peek(limiter, ABUSE, now), admitted=False, remaining=0, reset_at=BLOCK_ENDS_AT
            )
            require_state(check_once(limiter, new_check(ABUSE.key), now), admitted=True)
        require_state(peek(limiter, ABUSE, BLOCK_ENDS_AT), admitted=True, remaining=2)
        require_state(check_once(limiter, ABUSE, BLOCK_ENDS_AT), admitted=True, remaining=1)

    def test_a_block_refuses_checks_that_would_begin_none(self) -> None:
        limiter = self.open_handle()
        exhaust(limiter, ABUSE)
        check_once(limiter, ABUSE, EXCEEDED_AT)
        plain = new_check(ABUSE.key, limit=100, window_ms=ABUSE.window_ms)
        require_state(
            check_once(limiter, plain, EXCEEDED_AT), admitted=False, reset_at=BLOCK_ENDS_AT
        )
        require_state(peek(limiter, plain, EXCEEDED_AT), admitted=False, reset_at=BLOCK_ENDS_AT)

    def test_further_requests_do_not_prolong_a_block(self) -> None:
        limiter = self.open_handle()
        exhaust(limiter, ABUSE)
        check_once(limiter, ABUSE, EXCEEDED_AT)
        for minutes in range(0, 60, 4):
            later = EXCEEDED_AT + minutes * MINUTE
            require_state(check_once(limiter, ABUSE, later), admitted=False, reset_at=BLOCK_ENDS_AT)
        require_state(peek(limiter, ABUSE, START + 80 * MINUTE), admitted=True)

    def test_a_peek_begins_no_block(self) -> None:
        limiter = self.open_handle()
        open_ = new_check(ABUSE.key, limit=9, window_ms=ABUSE.window_ms, cost=5)
        check_once(limiter, open_)
        require_state(peek(limiter, ABUSE), admitted=False, reset_at=START + 10 * MINUTE)
        require_state(peek(limiter, ABUSE, START + 10 * MINUTE), admitted=True)

    def test_one_cost_may_pass_the_limit(self) -> None:
        limiter = self.open_handle()
        whole = new_check(ABUSE.key, limit=2, window_ms=10 * MINUTE, block_ms=HOUR, cost=3)
        require_state(
            check_once(limiter, whole, EXCEEDED_AT), admitted=False, reset_at=BLOCK_ENDS_AT
        )
        require_state(peek(limiter, ABUSE, BLOCK_ENDS_AT - 1), admitted=False)

    def test_the_window_continues_if_its_block_is_shorter(self) -> None:
        limiter, policy_check = self.open_handle(), new_check(limit=1, block_ms=SECOND)
        exhaust(limiter, policy_check)
        for now in (START, START + SECOND, START + MINUTE - 2 * SECOND):
            require_state(
                check_once(limiter, policy_check, now), admitted=False, reset_at=START + MINUTE
            )
        require_state(check_once(limiter, policy_check, START + MINUTE), admitted=True)

    def test_after_a_block_another_may_begin(self) -> None:
        limiter = self.open_handle()
        exhaust(limiter, ABUSE)
        check_once(limiter, ABUSE, EXCEEDED_AT)
        later = START + 2 * HOUR
        exhaust(limiter, ABUSE, later)
        require_state(check_once(limiter, ABUSE, later), admitted=False, reset_at=later + HOUR)
        require_state(peek(limiter, ABUSE, later + HOUR - 1), admitted=False)

    def test_a_block_is_of_one_key_alone(self) -> None:
        limiter = self.open_handle()
        exhaust(limiter, ABUSE)
        check_once(limiter, ABUSE, EXCEEDED_AT)
        other = new_check("abuse:192.0.2.11", limit=2, window_ms=10 * MINUTE, block_ms=HOUR)
        same_key = new_check(ABUSE.key, limit=2, window_ms=MINUTE, block_ms=HOUR)
        require_state(check_once(limiter, other, EXCEEDED_AT), admitted=True, remaining=1)
        require_state(check_once(limiter, same_key, EXCEEDED_AT), admitted=True, remaining=1)

    def test_a_clock_that_steps_back_ends_no_block(self) -> None:
        limiter = self.open_handle()
        exhaust(limiter, ABUSE)
        check_once(limiter, ABUSE, EXCEEDED_AT)
        for now in (EXCEEDED_AT - 1, START, START - 10 * MINUTE):
            require_state(peek(limiter, ABUSE, now), admitted=False, reset_at=BLOCK_ENDS_AT)
        require_state(peek(limiter, ABUSE, EXCEEDED_AT), admitted=False, reset_at=BLOCK_ENDS_AT)

    def test_without_a_block_the_next_window_is_open(self) -> None:
        limiter, policy_check = self.open_handle(), new_check()
        exhaust(limiter, policy_check)
        require_state(check_once(limiter, policy_check), admitted=False, reset_at=START + MINUTE)
        require_state(check_once(limiter, policy_check, START + MINUTE), admitted=True)
