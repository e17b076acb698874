"""The limiter suite on every adapter that ships with the library."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from payments_core.conformance.limiter import AdapterLocation, LimiterConformance
from payments_core.limiters.loader import open_limiter
from payments_core.limiters.memory import MemoryLimiter
from payments_core.limiters.port import Limiter
from tests.limiters.servers import (
    RedisServer,
    open_patiently,
    own_server_or_skip,
    redis_or_skip,
    with_fresh_prefix,
)


class TestMemory(LimiterConformance):
    def open(self) -> Limiter:
        return MemoryLimiter()


class TestRedis(LimiterConformance):
    shared = True
    can_fail = True
    _own: RedisServer | None = None

    @pytest.fixture(autouse=True)
    def _place(self, request: pytest.FixtureRequest) -> Iterator[None]:
        if "silen" in request.node.name or "comes_back" in request.node.name:
            self._own = own_server_or_skip()  # nobody else waits for a server that is stopped
            self.url = self._own.url
        else:
            self.url = with_fresh_prefix(redis_or_skip())
        yield
        if self._own is not None:
            self._own.end()

    def open(self) -> Limiter:
        return open_patiently(self.url) if self._own is None else open_limiter(self.url)

    def location(self) -> AdapterLocation:
        return AdapterLocation(f"{open_patiently.__module__}:{open_patiently.__name__}", self.url)

    def fail(self) -> None:
        assert self._own is not None
        self._own.stop()

    def restore(self) -> None:
        assert self._own is not None
        self._own.go_on()
