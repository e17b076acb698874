"""Rate policies under threads, in memory and over a real Redis, and over one that stops."""

from __future__ import annotations

import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from payments_core.limiters.memory import MemoryLimiter
from payments_core.limiters.port import Limiter
from payments_core.limiters.redis import RedisLimiter
from tests.http.throttling.test_throttling import Gate, details
from tests.limiters.servers import (
    open_patiently,
    own_server_or_skip,
    redis_or_skip,
    with_fresh_prefix,
)

THREADS = 16
EACH = 8
LIMIT = 50


@pytest.fixture(params=["memory", "redis"])
def limiter(request: pytest.FixtureRequest) -> Iterator[Limiter]:
    opened: Limiter = (
        MemoryLimiter()
        if request.param == "memory"
        else open_patiently(with_fresh_prefix(redis_or_skip()))
    )
    yield opened
    opened.close()


def test_threads_are_never_admitted_once_too_often(limiter: Limiter) -> None:
    gate = Gate({"partner_app_minute": LIMIT}, limiter=limiter)
    with ThreadPoolExecutor(THREADS) as pool:
        calls = [pool.submit(gate.send) for _ in range(THREADS * EACH)]
        statuses = [call.result().status for call in calls]
    assert sorted(set(statuses)) == [200, 429]
    assert statuses.count(200) == LIMIT


def test_a_redis_that_stops_refuses_at_once_and_recovers_by_itself() -> None:
    server = own_server_or_skip()
    limiter = RedisLimiter(server.url)
    gate = Gate(limiter=limiter)
    try:
        assert gate.send().status == 200
        server.stop()
        took = []
        for _ in range(10):
            began = time.perf_counter()
            seen = gate.send()
            took.append(time.perf_counter() - began)
            assert details(seen)["reason"] == "rate_limiter_unavailable"
        assert sorted(took)[len(took) // 2] < 0.15, took
        server.go_on()
        end = time.monotonic() + 10
        while gate.send().status != 200:
            assert time.monotonic() < end
            time.sleep(0.05)
    finally:
        limiter.close()
        server.end()
