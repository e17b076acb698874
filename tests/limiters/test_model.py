"""Random walks beside a model that is a dictionary: every standing must be the model's."""

from __future__ import annotations

from collections import Counter

import attrs
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from payments_core.clock import HOUR
from payments_core.limiters.memory import MemoryLimiter
from payments_core.limiters.port import Limiter, PolicyCheck, PolicyState
from tests.limiters.servers import open_patiently, redis_or_skip, with_fresh_prefix

START = 500_000 * HOUR

policy_checks = st.builds(
    PolicyCheck,
    key=st.sampled_from(("a", "b", "a:1")),
    limit=st.integers(0, 5),
    window_ms=st.sampled_from((10, 60, 600)),
    cost=st.sampled_from((0, 1, 1, 1, 2, 4)),
    block_ms=st.sampled_from((0, 0, 0, 5, 45, 1_000)),
)


@attrs.define
class Model:
    """What the port says, in as few words as it takes."""

    counters: Counter[tuple[str, int, int]] = attrs.field(factory=Counter)
    blocks: dict[tuple[str, int], int] = attrs.field(factory=dict)

    def check(self, policy_check: PolicyCheck, now: int) -> PolicyState:
        window = now // policy_check.window_ms
        before = self.counters[policy_check.key, policy_check.window_ms, window]
        count = self.counters[policy_check.key, policy_check.window_ms, window] = (
            before + policy_check.cost
        )
        blocked_until = self.blocks.get((policy_check.key, policy_check.window_ms), 0)
        if blocked_until <= now and policy_check.block_ms and before <= policy_check.limit < count:
            blocked_until = self.blocks[policy_check.key, policy_check.window_ms] = (
                now + policy_check.block_ms
            )
        waits = [blocked_until] if blocked_until > now else []
        waits += [(window + 1) * policy_check.window_ms] if count > policy_check.limit else []
        if waits:
            return PolicyState(False, policy_check.limit, 0, max(waits))
        return PolicyState(
            True,
            policy_check.limit,
            policy_check.limit - count,
            (window + 1) * policy_check.window_ms,
        )


class BesideTheModel(RuleBasedStateMachine):
    """Time goes on, and back by no more than a window of the shortest length."""

    def __init__(self) -> None:
        super().__init__()
        self.model = Model()
        self.limiter = self.opened()
        self.newest = self.now = START

    def opened(self) -> Limiter:
        return MemoryLimiter()

    def teardown(self) -> None:
        self.limiter.close()

    @rule(asked=st.lists(policy_checks, max_size=6))
    def check(self, asked: list[PolicyCheck]) -> None:
        expected = [self.model.check(policy_check, self.now) for policy_check in asked]
        assert list(self.limiter.check(asked, self.now)) == expected

    @rule(ahead=st.sampled_from((1, 3, 10, 59, 60, 601, 10**6)))
    def go_on(self, ahead: int) -> None:
        self.now += ahead
        self.newest = max(self.newest, self.now)

    @precondition(lambda self: self.now == self.newest)
    @rule(back=st.integers(1, 10))
    def step_back(self, back: int) -> None:
        self.now -= back

    @invariant()
    def a_look_changes_nothing(self) -> None:
        policy_check = PolicyCheck("a", 3, 60, 0)
        assert self.limiter.check([policy_check], self.now) == self.limiter.check(
            [policy_check], self.now
        )


class RedisBesideTheModel(BesideTheModel):
    def opened(self) -> Limiter:
        return open_patiently(with_fresh_prefix(redis_or_skip()))


TestMemoryBesideTheModel = BesideTheModel.TestCase
TestMemoryBesideTheModel.settings = settings(max_examples=100, deadline=None)
TestRedisBesideTheModel = RedisBesideTheModel.TestCase
TestRedisBesideTheModel.settings = settings(max_examples=20, deadline=None)
