"""The limiter port: the promises of an adapter. `payments_core.conformance.limiter` proves them.

A window is a multiple of its length since the epoch: instant `now` is in window number
`now // window_ms`. Each key has a counter for each window (contract section 9).

The promise in one paragraph: by the callers' own numbering of the windows, no window of a key ever
admits more than its limit, from any number of threads, and from processes whose clocks are a
little apart. A clock that steps back finds the same counters; a limiter that has
forgotten a window because it is too old refuses calls for it. A clock may run ahead.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from payments_core.clock import Instant


class LimiterUnavailable(Exception):
    """The limiter did not answer, and may or may not have counted. Nothing is admitted."""


# Several of each are made for every request, and a frozen attrs class takes six times as long.


class PolicyCheck(msgspec.Struct, frozen=True, gc=False):
    """One policy that a request counts against. Raises ValueError for numbers below their minimum.

    Counters belong to the pair of key and window length; the limit may change between two asks.
    """

    key: str
    """The counter's key: the policy's name and its subject, such as `ip:203.0.113.7`."""

    limit: int
    """The limit of a window; 0 admits nothing."""

    window_ms: int
    """The length of a window, at least 1."""

    cost: int = 1
    """The amount that the request adds to the counter; 0 reads without counting.

    A negative cost returns the count of an earlier, failed request. The counter
    of that window never falls below 0, and a block that began continues.
    """

    block_ms: int = 0
    """Beyond the limit the key is refused for this long, counted from the request that exceeded the
    limit, across windows. 0: only until the window ends."""

    def __post_init__(self) -> None:
        if self.limit < 0 or self.window_ms < 1 or self.block_ms < 0:
            raise ValueError("a limit and block must be at least 0, and a window at least 1 ms")


class PolicyState(msgspec.Struct, frozen=True, gc=False):
    """The state of one policy after a request was counted against it."""

    admitted: bool
    """Whether the counter, this request's cost included, is within the limit, and no block is
    active.

    A read of a full counter is admitted; its `remaining` is 0.
    """

    limit: int
    """The limit of the ask."""

    remaining: int
    """The rest of the window's limit, never below 0; 0 during a block."""

    reset_at: Instant
    """When the window ends, in the caller's time; during a block, when the next request can be
    admitted: when the block ends, or the window if it is beyond its limit and ends later."""


class Limiter(Protocol):
    """An adapter. It may be used from many threads at once."""

    def check(self, policy_checks: Sequence[PolicyCheck], now: Instant) -> Sequence[PolicyState]:
        """Count one request against each ask, and return the state of each, in order.

        One round trip. Each ask is counted atomically, independently of the others, and
        refused requests count too. The ask whose cost takes the counter from within the limit to
        beyond it begins a block, if it has `block_ms` and none is active; further requests do not
        prolong it. A key given twice in one call is counted twice.

        Raises LimiterUnavailable, at once or within about half a second.
        """

    def close(self) -> None:
        """Close the connections. Later calls of `check` raise LimiterUnavailable."""
