"""What is known about the rates of one request, and the headers that report it."""

from __future__ import annotations

import attrs

from payments_core.clock import SECOND, Instant
from payments_core.limiters.port import PolicyState
from payments_core_http.client_address import CountedNetwork


@attrs.define
class RateLimitContext:
    """What is known about one request's rates so far: its owner, and the state of each policy."""

    client: tuple[CountedNetwork, ...] = ()
    states: list[PolicyState] = attrs.field(factory=list)

    def headers(self, now: Instant) -> dict[str, str]:
        """`RateLimit-*` of the policy with the fewest requests left; empty if none was counted."""
        if not self.states:
            return {}
        least = min(self.states, key=lambda policy_state: policy_state.remaining)
        return {
            "RateLimit-Limit": str(least.limit),
            "RateLimit-Remaining": str(least.remaining),
            "RateLimit-Reset": str(seconds_until(least.reset_at, now)),
        }


def seconds_until(at: Instant, now: Instant) -> int:
    """Whole seconds, rounded up so that a retry is not too early; at least 1."""
    return max(1, -(-(at - now) // SECOND))
