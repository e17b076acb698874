"""Limiters by URL."""

from __future__ import annotations

import pytest

from payments_core.adapters import UnknownAdapter
from payments_core.limiters.loader import open_limiter
from payments_core.limiters.memory import MemoryLimiter
from payments_core.limiters.redis import RedisLimiter


@pytest.mark.parametrize("url", ["memory:", "memory://"])
def test_memory_is_opened_by_its_name(url: str) -> None:
    assert isinstance(open_limiter(url), MemoryLimiter)


@pytest.mark.parametrize(
    "url",
    [
        "redis://localhost",
        "redis://:p%2F@localhost:6380/2?prefix=a:",
        "rediss://user:p@redis.example:6380",
        "unix:///run/redis.sock?db=1",
    ],
)
def test_redis_is_opened_by_each_of_its_schemes(url: str) -> None:
    assert isinstance(open_limiter(url), RedisLimiter)


@pytest.mark.parametrize("url", ["etcd://somewhere", "Redis://localhost"])
def test_an_unknown_scheme_names_the_installed_ones(url: str) -> None:
    with pytest.raises(UnknownAdapter, match="installed: memory, redis, rediss, unix"):
        open_limiter(url)


def test_what_has_no_scheme_is_not_repeated() -> None:
    with pytest.raises(UnknownAdapter, match="no limiter for ''"):
        open_limiter("a-secret-in-the-wrong-place")


def test_memory_with_anything_after_it_is_refused() -> None:
    with pytest.raises(ValueError, match="memory:"):
        open_limiter("memory:something")
