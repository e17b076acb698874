"""The limiter in memory, with a record of what it was asked."""

from __future__ import annotations

from collections.abc import Sequence

from payments_core.clock import Instant
from payments_core.limiters.memory import MemoryLimiter
from payments_core.limiters.port import Ask, LimiterUnavailable, Standing


class CountingLimiter(MemoryLimiter):
    """`calls` has the keys of each check; `down` makes it fail."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[list[str]] = []
        self.down = False

    def check(self, asks: Sequence[Ask], now: Instant) -> Sequence[Standing]:
        if self.down:
            raise LimiterUnavailable("not there")
        self.calls.append([ask.key for ask in asks])
        return super().check(asks, now)
