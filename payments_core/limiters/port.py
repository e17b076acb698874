"""The limiter port: what an adapter promises. `payments_core.conformance.limiter` proves it.

A window is a multiple of its length since the epoch: instant `now` lies in number
`now // window_ms`. Each key has a counter for each window (contract section 9).

The promise in one paragraph: by the callers' own naming of the windows, no window of a key ever
admits more than its limit, from however many threads, and from processes whose clocks are a
little apart. A clock that steps back finds the counters as it left them; a limiter that has
forgotten a window because it is too old refuses what names it. A clock may run ahead as it likes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from payments_core.clock import Instant


class LimiterUnavailable(Exception):
    """The limiter could not say, and may or may not have counted. Nobody is admitted by this."""


# Several of each are made for every request, and a frozen attrs class takes six times as long.


class PolicyCheck(msgspec.Struct, frozen=True, gc=False):
    """One policy that a request counts against. Raises ValueError for numbers below their least.

    Counters belong to the pair of key and window length; the limit may change between two asks.
    """

    key: str
    """What is counted together: the policy's name and its subject, such as `ip:203.0.113.7`."""

    limit: int
    """How much a window admits; 0 admits nothing."""

    window_ms: int
    """How long a window is, at least 1."""

    cost: int = 1
    """What the request adds to the counter; 0 looks without counting.

    Below 0 it gives back what an earlier request counted, for one that came to nothing. The counter
    of that window never falls below 0, and a block that began goes on.
    """

    block_ms: int = 0
    """Beyond the limit the key is refused for so long, counted from the request that passed the
    limit, whatever window it is then. 0: only until the window ends."""

    def __post_init__(self) -> None:
        if self.limit < 0 or self.window_ms < 1 or self.block_ms < 0:
            raise ValueError("a limit and block must be at least 0, and a window at least 1 ms")


class PolicyState(msgspec.Struct, frozen=True, gc=False):
    """How one policy stands after a request was counted against it."""

    admitted: bool
    """Whether the counter, this request's cost included, is within the limit, and no block lasts.

    A look at a full counter is admitted; its `remaining` is 0.
    """

    limit: int
    """The limit of the ask."""

    remaining: int
    """What is left of the window's limit, never below 0; 0 during a block."""

    reset_at: Instant
    """When the window ends, in the caller's time; during a block, when the next request can be
    admitted: when the block ends, or the window if it is beyond its limit and ends later."""


class Limiter(Protocol):
    """An adapter. It may be used from many threads at once."""

    def check(self, policy_checks: Sequence[PolicyCheck], now: Instant) -> Sequence[PolicyState]:
        """Count one request against each ask, and say how each stands, in their order.

        One round trip. Each ask is counted atomically, whatever becomes of its neighbours, and
        refused requests count too. The ask whose cost takes the counter from within the limit to
        beyond it begins a block, if it has `block_ms` and none lasts; further requests do not
        prolong it. A key that stands twice in one call is counted twice.

        Raises LimiterUnavailable, at once or within about a tenth of a second.
        """

    def close(self) -> None:
        """Give back connections. Calls of `check` after it raise LimiterUnavailable."""
