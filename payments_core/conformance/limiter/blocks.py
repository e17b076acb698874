"""Blocks: beyond the limit a key is refused for longer than its window."""

from __future__ import annotations

from payments_core.clock import HOUR, MINUTE, SECOND
from payments_core.conformance.limiter.setting import (
    START,
    Setting,
    a_policy,
    count,
    fill,
    look,
    require,
)

ABUSE = a_policy("abuse:192.0.2.1", limit=2, window_ms=10 * MINUTE, block_ms=HOUR)
PASSED = START + 5 * SECOND
ENDS = PASSED + HOUR


class BlockChecks(Setting):
    """A block lasts from the request that passed the limit, for as long as was asked."""

    def test_a_block_begins_with_the_request_that_passes_the_limit(self) -> None:
        limiter = self.start()
        fill(limiter, ABUSE)
        require(look(limiter, ABUSE), admitted=True, remaining=0)
        passed = count(limiter, ABUSE, PASSED)
        require(passed, admitted=False, remaining=0, limit=2, reset_at=ENDS)

    def test_a_block_outlasts_its_window_to_the_millisecond(self) -> None:
        limiter = self.start()
        fill(limiter, ABUSE)
        count(limiter, ABUSE, PASSED)
        for now in (START + 10 * MINUTE, START + 35 * MINUTE, ENDS - 1):
            require(look(limiter, ABUSE, now), admitted=False, remaining=0, reset_at=ENDS)
            require(count(limiter, a_policy(ABUSE.key), now), admitted=True)
        require(look(limiter, ABUSE, ENDS), admitted=True, remaining=2)
        require(count(limiter, ABUSE, ENDS), admitted=True, remaining=1)

    def test_a_block_refuses_asks_that_would_begin_none(self) -> None:
        limiter = self.start()
        fill(limiter, ABUSE)
        count(limiter, ABUSE, PASSED)
        plain = a_policy(ABUSE.key, limit=100, window_ms=ABUSE.window_ms)
        require(count(limiter, plain, PASSED), admitted=False, reset_at=ENDS)
        require(look(limiter, plain, PASSED), admitted=False, reset_at=ENDS)

    def test_further_requests_do_not_prolong_a_block(self) -> None:
        limiter = self.start()
        fill(limiter, ABUSE)
        count(limiter, ABUSE, PASSED)
        for minutes in range(0, 60, 4):
            later = PASSED + minutes * MINUTE
            require(count(limiter, ABUSE, later), admitted=False, reset_at=ENDS)
        require(look(limiter, ABUSE, START + 80 * MINUTE), admitted=True)

    def test_a_look_begins_no_block(self) -> None:
        limiter = self.start()
        open_ = a_policy(ABUSE.key, limit=9, window_ms=ABUSE.window_ms, cost=5)
        count(limiter, open_)
        require(look(limiter, ABUSE), admitted=False, reset_at=START + 10 * MINUTE)
        require(look(limiter, ABUSE, START + 10 * MINUTE), admitted=True)

    def test_one_cost_may_pass_the_limit(self) -> None:
        limiter = self.start()
        whole = a_policy(ABUSE.key, limit=2, window_ms=10 * MINUTE, block_ms=HOUR, cost=3)
        require(count(limiter, whole, PASSED), admitted=False, reset_at=ENDS)
        require(look(limiter, ABUSE, ENDS - 1), admitted=False)

    def test_the_window_goes_on_where_its_block_is_shorter(self) -> None:
        limiter, ask = self.start(), a_policy(limit=1, block_ms=SECOND)
        fill(limiter, ask)
        for now in (START, START + SECOND, START + MINUTE - 2 * SECOND):
            require(count(limiter, ask, now), admitted=False, reset_at=START + MINUTE)
        require(count(limiter, ask, START + MINUTE), admitted=True)

    def test_after_a_block_another_may_begin(self) -> None:
        limiter = self.start()
        fill(limiter, ABUSE)
        count(limiter, ABUSE, PASSED)
        later = START + 2 * HOUR
        fill(limiter, ABUSE, later)
        require(count(limiter, ABUSE, later), admitted=False, reset_at=later + HOUR)
        require(look(limiter, ABUSE, later + HOUR - 1), admitted=False)

    def test_a_block_is_of_one_key_alone(self) -> None:
        limiter = self.start()
        fill(limiter, ABUSE)
        count(limiter, ABUSE, PASSED)
        other = a_policy("abuse:192.0.2.11", limit=2, window_ms=10 * MINUTE, block_ms=HOUR)
        same_key = a_policy(ABUSE.key, limit=2, window_ms=MINUTE, block_ms=HOUR)
        require(count(limiter, other, PASSED), admitted=True, remaining=1)
        require(count(limiter, same_key, PASSED), admitted=True, remaining=1)

    def test_a_clock_that_steps_back_ends_no_block(self) -> None:
        limiter = self.start()
        fill(limiter, ABUSE)
        count(limiter, ABUSE, PASSED)
        for now in (PASSED - 1, START, START - 10 * MINUTE):
            require(look(limiter, ABUSE, now), admitted=False, reset_at=ENDS)
        require(look(limiter, ABUSE, PASSED), admitted=False, reset_at=ENDS)

    def test_without_a_block_the_next_window_is_open(self) -> None:
        limiter, ask = self.start(), a_policy()
        fill(limiter, ask)
        require(count(limiter, ask), admitted=False, reset_at=START + MINUTE)
        require(count(limiter, ask, START + MINUTE), admitted=True)
