"""Rate policies of requests: who is counted, what is refused, and the headers that report it
(interface "Limits", contract §9).

A request is counted at up to three moments: by its address before anything else, by its route if
that has its own policy, and by its app once a credential has proven which app it is. What a route
creates without a credential is counted when it is created.
"""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from msgspec import structs

from payments_core.clock import DAY, SECOND, Clock, HasServerTime, Instant, SystemClock
from payments_core.limiters.policies import (
    PER_ADDRESS,
    ROUTE_POLICIES,
    RateLimits,
    RatePolicy,
    list_app_policies,
)
from payments_core.limiters.port import Limiter, LimiterUnavailable, PolicyCheck, PolicyState
from payments_core.plain_calls import require_plain_methods, require_plain_result
from payments_core.tenants.record import Environment
from payments_core_http.client_address import CountedNetwork, Proxy, find_address, identify_client
from payments_core_http.errors import REFUSALS, RateLimited, RateLimitReason
from payments_core_http.rate_context import RateLimitContext, seconds_until

if TYPE_CHECKING:
    from payments_core_http.routing import Credential, PageRoute, Row

UNAVAILABLE_RETRY_MS = 1 * SECOND

_MAX_KEPT = 10_000

APP_CREDENTIALS: frozenset[Credential] = frozenset(
    {"server_key", "bearer_key", "client_token", "session_token"}
)
"""The credentials whose calls count for their app. Anyone can make calls with other credentials,
and would use up the partner's quota."""

_PATHS_OF_PAGES = re.compile(
    r"/(pay|sdk/v1|dashboard|docs|\.well-known)(/.*)?"
    r"|/(favicon|apple-touch-icon)[a-z0-9-]*\.(ico|png|svg)|/robots\.txt",
    re.ASCII | re.DOTALL,
)
"""Paths that a deployment serves in any generation or page, and those that browsers request by
themselves. A request for them is not abuse, whether this release has them or not."""

UNKNOWN_ADDRESS_CHECK = PolicyCheck("address:unknown", 1_000_000_000, DAY, 1)
"""Counts the requests of a day whose client has no known address; it refuses none."""

UNKNOWN_ADDRESSES = (
    "requests arrive without their client's address, and nothing is counted by address:"
    " behind a Unix socket, let the proxy set X-Forwarded-For, and trust it with `unix` among the"
    " trusted proxies"
)

_log = logging.getLogger("payments_core_http")


class Throttle:
    """The rate policies of one application; without a limiter nothing is counted."""

    def __init__(
        self,
        limiter: Limiter | None,
        limits: RateLimits | None = None,
        *,
        trusted_proxies: tuple[Proxy, ...] = (),
        clock: Clock | None = None,
    ) -> None:
        """`clock` is the real clock unless given, also if a sandbox's clock is ahead.

        Raises TypeError for a limiter or a clock with an asynchronous method.
        """
        require_plain_methods(limiter, "limiter", Limiter, HasServerTime)
        require_plain_methods(clock, "clock", Clock)
        self._limiter = limiter
        self._limits = limits or RateLimits()
        self._trusted = trusted_proxies
        self._clock = clock or SystemClock()
        self._is_broken = self._has_reported_address = False
        self._kept_checks: dict[Hashable, list[PolicyCheck]] = {}

    def find_address(self, environ: Mapping[str, Any]) -> str | None:
        """The address of a request's client, also behind trusted proxies; None if it is unknown."""
        return find_address(environ, self._trusted)

    def check_address(self, rate_context: RateLimitContext, environ: Mapping[str, Any]) -> None:
        """Count the request for its address. Raises RateLimited, also if the address is blocked."""
        if self._limiter is None:
            return
        client = rate_context.client = identify_client(environ, self._trusted)
        if not client:
            self._report_unknown_address(rate_context)
            return
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

    def _report_unknown_address(self, rate_context: RateLimitContext) -> None:
        """Count the request as one that no policy of an address counts, for `payments doctor`, and
        log it once."""
        if not self._has_reported_address:
            self._has_reported_address = True
            _log.warning(UNKNOWN_ADDRESSES)
        self._count_quietly([UNKNOWN_ADDRESS_CHECK])

    def _keep_address_checks(self, client: tuple[CountedNetwork, ...]) -> list[PolicyCheck]:
        return self._keep(
            client[0].name,  # which the networks around it follow from
            [
                *(self._policy_check(PER_ADDRESS, one.name, one.multiple) for one in client),
                *(self._abuse_check(one, cost=0) for one in client),
            ],
        )

    def _keep(self, key: Hashable, policy_checks: list[PolicyCheck]) -> list[PolicyCheck]:
        """Cache what nearly every request counts: to make it takes longer than to count."""
        if len(self._kept_checks) >= _MAX_KEPT:
            self._kept_checks.clear()
        self._kept_checks[key] = policy_checks
        return policy_checks

    def count_unknown_path(
        self, rate_context: RateLimitContext, environ: Mapping[str, Any]
    ) -> None:
        """Count a request for an unknown path; too many of them block the address.

        Paths of pages do not count. Nor does a request that a page of another site makes a browser
        send, for an image, a frame or a call: it could block its visitors, or a whole office.
        """
        is_of_page = _PATHS_OF_PAGES.fullmatch(environ.get("PATH_INFO", "")) is not None
        is_cross_site = environ.get("HTTP_SEC_FETCH_SITE") == "cross-site"
        if not is_of_page and not is_cross_site:
            self._count_quietly([self._abuse_check(one, cost=1) for one in rate_context.client])

    def check_route(
        self,
        rate_context: RateLimitContext,
        route: Row,
        subjects: Mapping[str, str],
        environment: Environment | None,
    ) -> None:
        """Count the request for its route's own policy, if it has one. Raises RateLimited."""
        if self._limiter is None or route.policy is None:
            return
        policy = ROUTE_POLICIES[route.policy]
        if policy.subject == "provider":
            return  # counted when the provider has proven that it sends: `check_provider`
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
        self._count(rate_context, policy, policy_checks)

    def check_miss(self, rate_context: RateLimitContext, route: Row) -> None:
        """Count, for its address, a request whose route has not found what it names, or has failed.

        Raises RateLimited in place of that answer after too many: a guesser learns nothing more,
        and a visitor with a known link is never counted here.
        """
        if self._limiter is None or route.miss_policy is None:
            return
        policy = ROUTE_POLICIES[route.miss_policy]
        policy_checks = self._address_checks(rate_context, policy)
        self._count(rate_context, policy, policy_checks)

    def check_provider(
        self, rate_context: RateLimitContext, route: Row, provider: str, notices: int
    ) -> None:
        """Count new notices of a provider, which has proven that it sent them. Raises RateLimited.

        Only then: nobody else can use up what the provider may send.
        """
        if self._limiter is None or route.policy is None or not notices:
            return
        policy = ROUTE_POLICIES[route.policy]
        self._count(rate_context, policy, [self._policy_check(policy, provider, cost=notices)])

    def check_name(self, rate_context: RateLimitContext, route: PageRoute, username: str) -> None:
        """Count a log-in for the operator that it names, as it is looked up, whether there is one.

        It counts for the name at this address: nobody elsewhere can lock the operator out with
        wrong passwords. Passwords have 144 random bits, so that guesses from many addresses do not
        find one. Raises RateLimited.
        """
        if self._limiter is None or route.name_policy is None:
            return
        policy = ROUTE_POLICIES[route.name_policy]
        name = hashlib.sha256(username.encode()).hexdigest()
        policy_checks = self._address_checks(rate_context, policy, f" {name}")
        self._count(rate_context, policy, policy_checks)

    def check_app(
        self, rate_context: RateLimitContext, route: Row, environment: Environment
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
        self, rate_context: RateLimitContext, route: Row, environment: Environment
    ) -> None:
        """Check whether the environment may create one more, without counting.

        Raises RateLimited. So a request that cannot succeed is refused before its body is read;
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
        self, rate_context: RateLimitContext, route: Row, environment: Environment | None
    ) -> Callable[[], None]:
        """Count what the route is about to create; the result gives the count back on failure.

        It is counted before it is created, so that simultaneous requests cannot exceed the limit
        together. Until then a request that will be refused takes a place. Raises RateLimited.
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
        window then admits one request less.
        """
        assert self._limiter is not None
        returned = structs.replace(policy_check, cost=-policy_check.cost)
        try:
            require_plain_result(self._limiter.check([returned], counted_at), "check")
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

    def _count(
        self,
        rate_context: RateLimitContext,
        policy: RatePolicy,
        policy_checks: Sequence[PolicyCheck],
    ) -> None:
        """Count the request for one policy. Raises RateLimited."""
        policies = [policy] * len(policy_checks)
        self._check_policies(rate_context, policies, policy_checks)
        self._require_admitted(rate_context, policies)

    def _check_policies(
        self,
        rate_context: RateLimitContext,
        policies: Sequence[RatePolicy | None],
        policy_checks: Sequence[PolicyCheck],
        now: Instant | None = None,
    ) -> Sequence[PolicyState]:
        """The state of each policy at `now`; those of rates are kept with the request."""
        assert self._limiter is not None
        if not policy_checks:  # of an address that is unknown
            return ()
        now = self._clock.real_now() if now is None else now
        try:
            policy_states = self._limiter.check(policy_checks, now)
        except Exception as error:  # on any error, nobody is admitted
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

    def _count_quietly(self, policy_checks: list[PolicyCheck]) -> None:
        """Count without a decision. A failure is only logged."""
        if self._limiter is None or not policy_checks:
            return
        try:
            states = self._limiter.check(policy_checks, self._clock.real_now())
            require_plain_result(states, "check")
        except Exception as error:
            self._log_limiter_error(error)

    def _log_limiter_error(self, error: Exception) -> None:
        """Log that the limiter did not answer; an unexpected error with its trace, and only once
        until it answers again: there may be many requests."""
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
        """Raise for the policy that refuses for longest, if one of the newest states refuses."""
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
        return REFUSALS[reason](
            rule=None if policy is None or policy is PER_ADDRESS else policy.rule,
            limit=policy_state.limit,
            remaining=policy_state.remaining,
            reset_at=policy_state.reset_at,
            retry_after_s=seconds_until(policy_state.reset_at, self._clock.real_now()),
            reason=reason,
        )


def _do_nothing() -> None:
    """Nothing was counted."""


def _hash_code(code: str) -> str:
    """A limiter's key for a link's code, which gives access to the page and is in no log."""
    return hashlib.sha256(code.encode()).hexdigest()[:32]
