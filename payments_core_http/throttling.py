"""Rate policies on the way in: who is counted, what is refused, and the headers that tell
(interface "Limits", contract §9).

A request is counted at up to three moments: by its address before anything else, by its route
where that has a policy of its own, and by its app once a credential has proven which that is.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from payments_core.clock import SECOND, Clock, Instant, SystemClock
from payments_core.limiters.policies import (
    APP_POLICIES,
    PER_ADDRESS,
    ROUTE_POLICIES,
    Limits,
    Policy,
)
from payments_core.limiters.port import Ask, Limiter, LimiterUnavailable, Standing
from payments_core.tenants.record import Environment
from payments_core_http.client_address import Network, client_of
from payments_core_http.errors import RateLimited, Reason

if TYPE_CHECKING:
    from payments_core_http.routing import Route

UNAVAILABLE_MS = 1 * SECOND

_log = logging.getLogger("payments_core_http")


@attrs.define
class Passage:
    """What is known of one request's rates so far: whose it is, and where each policy stands."""

    client: str = ""
    standings: list[Standing] = attrs.field(factory=list)

    def headers(self, now: Instant) -> dict[str, str]:
        """`RateLimit-*` of the policy with the least left; nothing where none was counted."""
        if not self.standings:
            return {}
        least = min(self.standings, key=lambda standing: standing.remaining)
        return {
            "RateLimit-Limit": str(least.limit),
            "RateLimit-Remaining": str(least.remaining),
            "RateLimit-Reset": str(_seconds_until(least.reset_at, now)),
        }


class Throttle:
    """The rate policies of one application; without a limiter nothing is counted."""

    def __init__(
        self,
        limiter: Limiter | None,
        limits: Limits | None = None,
        *,
        trusted_proxies: tuple[Network, ...] = (),
        clock: Clock | None = None,
    ) -> None:
        """`clock` is the real one unless given, also where a sandbox's is ahead."""
        self._limiter = limiter
        self._limits = limits or Limits()
        self._trusted = trusted_proxies
        self._clock = clock or SystemClock()
        self._is_broken = False

    def enter(self, passage: Passage, environ: Mapping[str, Any]) -> None:
        """Count the request for its address. Raises RateLimited, also where that is blocked."""
        if self._limiter is None:
            return
        passage.client = client_of(environ, self._trusted)
        asks = [self._ask(PER_ADDRESS, passage.client), self._abuse(passage.client, cost=0)]
        _, blocked = self._counted(passage, (PER_ADDRESS, None), asks)
        if not blocked.admitted:
            raise self._refusal(passage, None, blocked, "abuse_blocked")
        self._require(passage, (PER_ADDRESS,))

    def wander(self, passage: Passage) -> None:
        """Count a request for a path that there is not; too many of them block the address."""
        if self._limiter is not None:
            try:
                self._limiter.check([self._abuse(passage.client, cost=1)], self._clock.real())
            except Exception as error:
                self._tell(error)

    def enter_route(self, passage: Passage, route: Route, subjects: Mapping[str, str]) -> None:
        """Count the request for its route's own policy, if it has one. Raises RateLimited."""
        if self._limiter is None or route.policy is None:
            return
        policy = ROUTE_POLICIES[route.policy]
        subject = {
            "address": passage.client,
            "payment": subjects.get("paymentId", ""),
            "address_and_app": f"{passage.client} {subjects.get('appId', '')}",
        }[policy.subject]
        self._counted(passage, (policy,), [self._ask(policy, subject)])
        self._require(passage, (policy,))

    def enter_app(self, passage: Passage, route: Route, environment: Environment) -> None:
        """Count the request for its app and its environment. Raises RateLimited.

        Calls with an app id alone have counters of their own: anybody can make them, and they eat
        nothing of the partner's quota.
        """
        if self._limiter is None:
            return
        policies = [one for one in APP_POLICIES if one.counts(route.method, route.path)]
        whose = "public " if route.credential == "app_id" else ""
        subject = {"environment": whose + environment.id, "app": whose + environment.app_id}
        asks = [
            self._ask(policy, subject[policy.subject], environment.rate_limits)
            for policy in policies
        ]
        self._counted(passage, policies, asks)
        self._require(passage, policies)

    def headers(self, passage: Passage) -> dict[str, str]:
        """The `RateLimit-*` headers of the request's response."""
        return passage.headers(self._clock.real())

    # One check.

    def _ask(self, policy: Policy, subject: str, own: Mapping[str, int] | None = None) -> Ask:
        limit = self._limits.of(policy, own)
        return Ask(f"{policy.rule}:{subject}", limit, policy.window_ms)

    def _abuse(self, client: str, *, cost: int) -> Ask:
        abuse = self._limits.abuse
        return Ask(f"abuse:{client}", abuse.requests, abuse.window_ms, cost, abuse.block_ms)

    def _counted(
        self, passage: Passage, policies: Sequence[Policy | None], asks: Sequence[Ask]
    ) -> Sequence[Standing]:
        """Where each policy stands; those of rates are kept with the request."""
        assert self._limiter is not None
        now = self._clock.real()
        try:
            standings = self._limiter.check(asks, now)
        except Exception as error:  # whatever it is, nobody is admitted by it
            self._tell(error)
            first = Standing(False, asks[0].limit, 0, now + UNAVAILABLE_MS)
            raise self._refusal(passage, policies[0], first, "rate_limiter_unavailable") from error
        self._is_broken = False
        passage.standings += [
            standing
            for policy, standing in zip(policies, standings, strict=True)
            if policy is not None
        ]
        return standings

    def _tell(self, error: Exception) -> None:
        """Log that the limiter did not answer; a fault of its own with its trace, until it answers
        again once: there may be many requests."""
        is_fault = not isinstance(error, LimiterUnavailable)
        if is_fault and not self._is_broken:
            self._is_broken = True
            _log.error("the rate limiter raised what it may not", exc_info=error)
        else:
            said = type(error).__name__ if is_fault else error
            _log.warning("the rate limiter did not answer: %s", said)

    def _require(self, passage: Passage, policies: Sequence[Policy]) -> None:
        """Raise for the policy that refuses for longest, if one of the newest standings does."""
        newest = passage.standings[-len(policies) :] if policies else []
        refused = [
            (standing.reset_at, policy, standing)
            for policy, standing in zip(policies, newest, strict=True)
            if not standing.admitted
        ]
        if refused:
            _, policy, standing = max(refused, key=lambda it: it[0])
            raise self._refusal(passage, policy, standing, "rate_limit_exceeded")

    def _refusal(
        self, passage: Passage, policy: Policy | None, standing: Standing, reason: Reason
    ) -> RateLimited:
        passage.standings = [standing]
        return RateLimited(
            rule=None if policy is None or policy is PER_ADDRESS else policy.rule,
            limit=standing.limit,
            remaining=standing.remaining,
            reset_at=standing.reset_at,
            retry_after_s=_seconds_until(standing.reset_at, self._clock.real()),
            reason=reason,
        )


def _seconds_until(at: Instant, now: Instant) -> int:
    """Whole seconds, so that who waits them does not come too early; 1 at the least."""
    return max(1, -(-(at - now) // SECOND))
