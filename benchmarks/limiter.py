"""Decisions of six policies, beside the package `limits` with fixed windows.

    python -m benchmarks.limiter

A decision counts one request against six policies; `limits` has no call for that, so it is six
calls of `hit`, and six more for what is left and until when, which ours returns with the rest. Both
count in memory, and then, where a `redis-server` is installed, in a private one over a Unix
socket. Asks and items are made once; what making six asks for each request adds is a row of its
own. Rounds are interleaved, so that a busy machine is busy for all; medians are compared.
"""

from __future__ import annotations

import shutil
import statistics
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from limits import RateLimitItemPerSecond
from limits.storage import MemoryStorage, RedisStorage
from limits.strategies import FixedWindowRateLimiter

from payments_core.clock import SECOND, SystemClock
from payments_core.limiters.memory import MemoryLimiter
from payments_core.limiters.port import Limiter, PolicyCheck
from payments_core.limiters.redis import RedisLimiter

ROUNDS = 15
IN_MEMORY = 10_000
IN_REDIS = 500
THREADS = 8
LIMIT = 10**9
POLICIES = (  # of the contract, and how many seconds their windows have
    ("general_minute", 60),
    ("sensitive_minute", 60),
    ("partner_app_minute", 60),
    ("payments_app_minute", 60),
    ("deposit_address_app_minute", 60),
    ("partner_app_burst", 10),
)
SUBJECT = "app_-P23J5k-D8QQDDBxu8rHlL0O"
AIM_A_SECOND = 100_000
AIM_RATIO = 8.0

Decision = Callable[[], object]


def main() -> None:
    """Print decisions a second, and how many times as many ours are."""
    ours = "ours, memory"
    rates = _measured(
        {
            ours: _of_ours(MemoryLimiter()),
            "ours, memory, with making the asks": _of_ours(MemoryLimiter(), made_each_time=True),
            "limits, memory": _of_limits(FixedWindowRateLimiter(MemoryStorage())),
            "limits, memory, and what is left": _of_limits(
                FixedWindowRateLimiter(MemoryStorage()), reported=True
            ),
        },
        IN_MEMORY,
    )
    rates[f"ours, memory, {THREADS} threads"] = _by_threads(_of_ours(MemoryLimiter()))
    _print("In memory", rates)
    ratio = rates[ours] / rates["limits, memory"]
    print(
        f"  ours, memory: {ratio:.1f} x limits (aim {AIM_RATIO:.0f}), aim {AIM_A_SECOND:,} a second"
    )
    if shutil.which("redis-server") is None:
        print("No redis-server is installed, so that was all.")
        return
    with _redis() as path:
        limiter = RedisLimiter(f"unix://{path}")
        storage = RedisStorage(f"redis+unix://{path}")
        rates = _measured(
            {
                "ours, Redis": _of_ours(limiter),
                "limits, Redis": _of_limits(FixedWindowRateLimiter(storage)),
            },
            IN_REDIS,
        )
        limiter.close()
    _print("In Redis", rates)
    print(f"  ours, Redis: {rates['ours, Redis'] / rates['limits, Redis']:.1f} x limits")


def _of_ours(limiter: Limiter, *, made_each_time: bool = False) -> Decision:
    now = SystemClock().now
    policy_checks = _asks()
    if made_each_time:
        return lambda: limiter.check(_asks(), now())
    return lambda: limiter.check(policy_checks, now())


def _asks() -> list[PolicyCheck]:
    return [
        PolicyCheck(f"{policy}:{SUBJECT}", LIMIT, seconds * SECOND) for policy, seconds in POLICIES
    ]


def _of_limits(limiter: FixedWindowRateLimiter, *, reported: bool = False) -> Decision:
    items = [(RateLimitItemPerSecond(LIMIT, seconds), policy) for policy, seconds in POLICIES]
    hit, stats = limiter.hit, limiter.get_window_stats
    if reported:
        return lambda: [(hit(*item, SUBJECT), stats(*item, SUBJECT)) for item in items]
    return lambda: [hit(*item, SUBJECT) for item in items]


def _measured(decisions: dict[str, Decision], times: int) -> dict[str, float]:
    rates: dict[str, list[float]] = {name: [] for name in decisions}
    for _ in range(ROUNDS):
        for name, decide in decisions.items():
            began = time.perf_counter()
            for _ in range(times):
                decide()
            rates[name].append(times / (time.perf_counter() - began))
    return {name: statistics.median(each) for name, each in rates.items()}


def _by_threads(decide: Decision) -> float:
    def run() -> None:
        for _ in range(IN_MEMORY):
            decide()

    threads = [threading.Thread(target=run) for _ in range(THREADS)]
    began = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return THREADS * IN_MEMORY / (time.perf_counter() - began)


def _print(title: str, rates: dict[str, float]) -> None:
    print(f"{title}: six-policy decisions a second, median of {ROUNDS} interleaved rounds")
    for name, rate in rates.items():
        print(f"  {name:36} {rate:10,.0f}")


@contextmanager
def _redis() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="redis") as folder:
        path = Path(folder) / "s"
        server = subprocess.Popen(
            ["redis-server", "--port", "0", "--unixsocket", str(path), "--dir", folder,
             "--save", "", "--appendonly", "no"],
            stdout=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            while not path.exists():
                time.sleep(0.01)
                assert server.poll() is None, "redis-server does not start"
            yield path
        finally:
            server.kill()
            server.wait()


if __name__ == "__main__":
    main()
