"""Rate policies on the way in: who is counted, what is refused, and the headers that tell
(interface "Limits", contract §9).

A request is counted at up to three moments: by its address before anything else, by its route
where that has a policy of its own, and by its app once a credential has proven which that is.
What a route made without a credential is counted once it is made.
"""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import attrs
from msgspec import structs

from payments_core.clock import SECOND, Clock, Instant, SystemClock
from payments_core.limiters.policies import (
    PER_ADDRESS,
    ROUTE_POLICIES,
    RateLimits,
    RatePolicy,
    list_app_policies,
)
from payments_core.limiters.port import Limiter, LimiterUnavailable, PolicyCheck, PolicyState
from payments_core.tenants.record import Environment
from payments_core_http.client_address import CountedNetwork, Network, identify_client
from payments_core_http.errors import RateLimited, RateLimitReason

if TYPE_CHECKING:
    from payments_core_http.routing import Credential, Route

UNAVAILABLE_RETRY_MS = 1 * SECOND

_MAX_KEPT = 10_000

APP_CREDENTIALS: frozenset[Credential] = frozenset(
    {"server_key", "bearer_key", "client_token", "session_token"}
)
"""The credentials whose calls count for their app. Anybody can make calls with another, and would
use up the partner's quota."""

_PATHS_OF_PAGES = re.compile(
    r"/(pay|sdk/v1|dashboard|docs|\.well-known)(/.*)?"
    r"|/(favicon|apple-touch-icon)[a-z0-9-]*\.(ico|png|svg)|/robots\.txt",
    re.ASCII | re.DOTALL,
)
"""Paths that a deployment serves in any generation or page, and those that browsers ask for by
themselves. To ask for them is no abuse, whether this release has them or not."""

_log = logging.getLogger("payments_core_http")


@attrs.define
class RateLimitContext:
    """What is known of one request's rates so far: whose it is, and where each policy stands."""

    client: tuple[CountedNetwork, ...] = ()
    states: list[PolicyState] = attrs.field(factory=list)

    def headers(self, now: Instant) -> dict[str, str]:
        """`RateLimit-*` of the policy with the least left; nothing where none was counted."""
        if not self.states:
            return {}
        least = min(self.states, key=lambda policy_state: policy_state.remaining)
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
        limits: RateLimits | None = None,
        *,
        trusted_proxies: tuple[Network, ...] = (),
        clock: Clock | None = None,
    ) -> None:
        """`clock` is the real one unless given, also where a sandbox's is ahead."""
        self._limiter = limiter
        self._limits = limits or RateLimits()
        self._trusted = trusted_proxies
        self._clock = clock or SystemClock()
        self._is_broken = False
        self._kept_checks: dict[Hashable, list[PolicyCheck]] = {}

    def check_address(self, rate_context: RateLimitContext, environ: Mapping[str, Any]) -> None:
        """Count the request for its address. Raises RateLimited, also where that is blocked."""
        if self._limiter is None:
            return
        client = rate_context.client = identify_client(environ, self._trusted)
        policies = [PER_ADDRESS] * len(client)
        policy_states = self._check_policies(
            rate_context,
            [*policies, *[None] * len(client)],
            self._kept_checks.get(client[0].name) or self._keep_address_checks(client),
        )
        blocked = [state for state in policy_states[len(client) :] if not state.admitted]
        if blocked:
            longest = max(blocked, key=lambda state: state.reset_at)
            raise self._refusal(rate_context, None, longest, "abuse_blocked")
        self._require_admitted(rate_context, policies)

    def _keep_address_checks(self, client: tuple[CountedNetwork, ...]) -> list[PolicyCheck]:
        return self._keep(
            client[0].name,  # which the networks around it follow from
            [
                *(self._policy_check(PER_ADDRESS, one.name, one.multiple) for one in client),
                *(self._abuse_check(one, cost=0) for one in client),
            ],
        )

    def _keep(self, key: Hashable, policy_checks: list[PolicyCheck]) -> list[PolicyCheck]:
        """Keep what is counted for nearly every request: to make it takes longer than to count."""
        if len(self._kept_checks) >= _MAX_KEPT:
            self._kept_checks.clear()
        self._kept_checks[key] = policy_checks
        return policy_checks

    def count_unknown_path(
        self, rate_context: RateLimitContext, environ: Mapping[str, Any]
    ) -> None:
        """Count a request for a path that there is not; too many of them block the address.

        Paths of pages do not count. Nor does what a page of another site makes a browser send, as
        an image, a frame or a call: such a page could block its visitors, or a whole office.
        """
        is_of_page = _PATHS_OF_PAGES.fullmatch(environ.get("PATH_INFO", "")) is not None
        is_cross_site = environ.get("HTTP_SEC_FETCH_SITE") == "cross-site"
        if self._limiter is not None and not is_of_page and not is_cross_site:
            try:
                self._limiter.check(
                    [self._abuse_check(one, cost=1) for one in rate_context.client],
                    self._clock.real_now(),
                )
            except Exception as error:
                self._log_limiter_error(error)

    def check_route(
        self,
        rate_context: RateLimitContext,
        route: Route,
        subjects: Mapping[str, str],
        environment: Environment | None,
    ) -> None:
        """Count the request for its route's own policy, if it has one. Raises RateLimited."""
        if self._limiter is None or route.policy is None:
            return
        policy = ROUTE_POLICIES[route.policy]
        if policy.subject == "payment":
            policy_checks = [self._policy_check(policy, subjects["paymentId"])]
        elif policy.subject == "link":
            policy_checks = [self._policy_check(policy, _hash_code(subjects["code"]))]
        elif policy.subject == "environment" and environment is not None:
            own = environment.rate_limits
            policy_checks = [self._policy_check(policy, environment.id, own=own)]
        else:
            of_app = environment is not None and policy.subject == "address_and_app"
            app = f" {environment.app_id}" if environment is not None and of_app else ""
            policy_checks = self._address_checks(rate_context, policy, app)
        policies = [policy] * len(policy_checks)
        self._check_policies(rate_context, policies, policy_checks)
        self._require_admitted(rate_context, policies)

    def check_miss(self, rate_context: RateLimitContext, route: Route) -> None:
        """Count, for its address, a request whose route has not found what it names.

        Raises RateLimited in place of that answer where there were too many: who guesses is told
        no more, and who has a link that is known is never counted here.
        """
        if self._limiter is None or route.miss_policy is None:
            return
        policy = ROUTE_POLICIES[route.miss_policy]
        policy_checks = self._address_checks(rate_context, policy)
        policies = [policy] * len(policy_checks)
        self._check_policies(rate_context, policies, policy_checks)
        self._require_admitted(rate_context, policies)

    def check_name(self, rate_context: RateLimitContext, route: Route, username: str) -> None:
        """Count a log-in for the operator that it names, as it is looked up, whether there is one.

        It counts for the name at this address: nobody elsewhere can keep the operator out with
        wrong passwords. Passwords are random, 144 bits of them, so that to try from many addresses
        finds none. Raises RateLimited.
        """
        if self._limiter is None or route.name_policy is None:
            return
        policy = ROUTE_POLICIES[route.name_policy]
        name = hashlib.sha256(username.encode()).hexdigest()
        policy_checks = self._address_checks(rate_context, policy, f" {name}")
        policies = [policy] * len(policy_checks)
        self._check_policies(rate_context, policies, policy_checks)
        self._require_admitted(rate_context, policies)

    def check_app(
        self, rate_context: RateLimitContext, route: Route, environment: Environment
    ) -> None:
        """Count the request for its app and its environment. Raises RateLimited."""
        if self._limiter is None or route.credential not in APP_CREDENTIALS:
            return
        policies = list_app_policies(route.method, route.path)
        # Its own limits change with its version.
        key = (environment.id, environment.version, route.method, route.path)
        policy_checks = self._kept_checks.get(key)
        if policy_checks is None:
            subject = {"environment": environment.id, "app": environment.app_id}
            policy_checks = self._keep(
                key,
                [
                    self._policy_check(policy, subject[policy.subject], own=environment.rate_limits)
                    for policy in policies
                ],
            )
        self._check_policies(rate_context, policies, policy_checks)
        self._require_admitted(rate_context, policies)

    def check_creations(
        self, rate_context: RateLimitContext, route: Route, environment: Environment
    ) -> None:
        """Look whether the environment may make one more of what the route makes, without counting.

        Raises RateLimited. So a request that has no chance is refused before its body is read;
        `count_creation` decides.
        """
        if self._limiter is None or route.creation_policy is None:
            return
        policy = ROUTE_POLICIES[route.creation_policy]
        policy_check = self._policy_check(
            policy, environment.id, own=environment.rate_limits, cost=0
        )
        [policy_state] = self._check_policies(rate_context, (policy,), [policy_check])
        if policy_state.remaining == 0:
            raise self._refusal(rate_context, policy, policy_state, "rate_limit_exceeded")

    def count_creation(
        self, rate_context: RateLimitContext, route: Route, environment: Environment | None
    ) -> Callable[[], None]:
        """Count what the route is about to make; what is returned gives that back if it does not.

        It is counted before it is made, so that requests of one moment cannot pass the limit
        together. Meanwhile one that will be refused takes another's place. Raises RateLimited.
        """
        if self._limiter is None or route.creation_policy is None or environment is None:
            return _do_nothing
        policy = ROUTE_POLICIES[route.creation_policy]
        policy_check = self._policy_check(policy, environment.id, own=environment.rate_limits)
        now = self._clock.real_now()  # of the window in which it counts, and is given back
        give_back = partial(self._give_back, policy_check, now)
        [policy_state] = self._check_policies(rate_context, (policy,), [policy_check], now)
        if not policy_state.admitted:
            give_back()
            raise self._refusal(rate_context, policy, policy_state, "rate_limit_exceeded")
        return give_back

    def _give_back(self, policy_check: PolicyCheck, counted_at: Instant) -> None:
        """Take back what was counted, in the window of that instant. A failure is only logged: the
        window then admits one less.
        """
        assert self._limiter is not None
        returned = structs.replace(policy_check, cost=-policy_check.cost)
        try:
            self._limiter.check([returned], counted_at)
        except Exception as error:
            self._log_limiter_error(error)

    def headers(self, rate_context: RateLimitContext) -> dict[str, str]:
        """The `RateLimit-*` headers of the request's response."""
        return rate_context.headers(self._clock.real_now())

    # One check.

    def _policy_check(
        self,
        policy: RatePolicy,
        subject: str,
        multiple: int = 1,
        *,
        own: Mapping[str, int] | None = None,
        cost: int = 1,
    ) -> PolicyCheck:
        limit = self._limits.limit_of(policy, own) * multiple
        return PolicyCheck(f"{policy.rule}:{subject}", limit, policy.window_ms, cost)

    def _address_checks(
        self, rate_context: RateLimitContext, policy: RatePolicy, suffix: str = ""
    ) -> list[PolicyCheck]:
        return [
            self._policy_check(policy, one.name + suffix, one.multiple)
            for one in rate_context.client
        ]

    def _abuse_check(self, network: CountedNetwork, *, cost: int) -> PolicyCheck:
        abuse = self._limits.abuse
        limit = abuse.requests * network.multiple
        return PolicyCheck(f"abuse:{network.name}", limit, abuse.window_ms, cost, abuse.block_ms)

    def _check_policies(
        self,
        rate_context: RateLimitContext,
        policies: Sequence[RatePolicy | None],
        policy_checks: Sequence[PolicyCheck],
        now: Instant | None = None,
    ) -> Sequence[PolicyState]:
        """Where each policy stands at `now`; those of rates are kept with the request."""
        assert self._limiter is not None
        now = self._clock.real_now() if now is None else now
        try:
            policy_states = self._limiter.check(policy_checks, now)
        except Exception as error:  # whatever it is, nobody is admitted by it
            self._log_limiter_error(error)
            first = PolicyState(False, policy_checks[0].limit, 0, now + UNAVAILABLE_RETRY_MS)
            raise self._refusal(
                rate_context, policies[0], first, "rate_limiter_unavailable"
            ) from error
        self._is_broken = False
        rate_context.states += [
            policy_state
            for policy, policy_state in zip(policies, policy_states, strict=True)
            if policy is not None
        ]
        return policy_states

    def _log_limiter_error(self, error: Exception) -> None:
        """Log that the limiter did not answer; a fault of its own with its trace, until it answers
        again once: there may be many requests."""
        is_fault = not isinstance(error, LimiterUnavailable)
        if is_fault and not self._is_broken:
            self._is_broken = True
            _log.error("the rate limiter raised an unexpected error", exc_info=error)
        else:
            said = type(error).__name__ if is_fault else error
            _log.warning("the rate limiter did not answer: %s", said)

    def _require_admitted(
        self, rate_context: RateLimitContext, policies: Sequence[RatePolicy]
    ) -> None:
        """Raise for the policy that refuses for longest, if one of the newest standings does."""
        newest = rate_context.states[-len(policies) :] if policies else []
        refused = [
            (policy_state.reset_at, policy, policy_state)
            for policy, policy_state in zip(policies, newest, strict=True)
            if not policy_state.admitted
        ]
        if refused:
            _, policy, policy_state = max(refused, key=lambda it: it[0])
            raise self._refusal(rate_context, policy, policy_state, "rate_limit_exceeded")

    def _refusal(
        self,
        rate_context: RateLimitContext,
        policy: RatePolicy | None,
        policy_state: PolicyState,
        reason: RateLimitReason,
    ) -> RateLimited:
        rate_context.states = [policy_state]
        return RateLimited(
            rule=None if policy is None or policy is PER_ADDRESS else policy.rule,
            limit=policy_state.limit,
            remaining=policy_state.remaining,
            reset_at=policy_state.reset_at,
            retry_after_s=_seconds_until(policy_state.reset_at, self._clock.real_now()),
            reason=reason,
        )


def _do_nothing() -> None:
    """Nothing was counted."""


def _hash_code(code: str) -> str:
    """What a limiter knows of a link's code, which opens the page and is in no log."""
    return hashlib.sha256(code.encode()).hexdigest()[:32]


def _seconds_until(at: Instant, now: Instant) -> int:
    """Whole seconds, so that who waits them does not come too early; 1 at the least."""
    return max(1, -(-(at - now) // SECOND))
