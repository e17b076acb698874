"""The limiter in memory, with a record of what it was asked."""

from __future__ import annotations

from collections.abc import Sequence

from payments_core.clock import Instant
from payments_core.limiters.memory import MemoryLimiter
from payments_core.limiters.port import LimiterUnavailable, PolicyCheck, PolicyState


class CountingLimiter(MemoryLimiter):
    """`calls` has the keys of each check; `down` makes it fail."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[list[str]] = []
        self.down = False

    def check(self, policy_checks: Sequence[PolicyCheck], now: Instant) -> Sequence[PolicyState]:
        if self.down:
            raise LimiterUnavailable("not there")
        self.calls.append([policy_check.key for policy_check in policy_checks])
        return super().check(policy_checks, now)
