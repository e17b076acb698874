"""Another process that counts the same keys, started by the suite.

`python -m payments_core.conformance.limiter.child OPENER URL KEY LIMIT NOW`
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module

from payments_core.clock import MINUTE
from payments_core.limiters.port import Limiter, PolicyCheck


def main(opener: str, url: str, key: str, limit: str, now: str) -> None:
    """Print `ready`, wait for a line, count, and print how many were admitted."""
    module, _, name = opener.partition(":")
    open_url: Callable[[str], Limiter] = getattr(import_module(module), name)
    limiter = open_url(url)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()
    sys.stdout.write(f"{count_admitted(limiter, PolicyCheck(key, int(limit), MINUTE), int(now))}\n")
    limiter.close()


def count_admitted(limiter: Limiter, policy_check: PolicyCheck, now: int) -> int:
    """How many requests were admitted, of as many as the limit."""
    return sum(limiter.check([policy_check], now)[0].admitted for _ in range(policy_check.limit))


if __name__ == "__main__":
    main(*sys.argv[1:])
