"""The rate policies: what each counts, and its limit (interface "Limits",
contract §9).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import Literal

import attrs

from payments_core.clock import HOUR, MINUTE, SECOND

Subject = Literal[
    "address",
    "environment",
    "app",
    "payment",
    "link",
    "provider",
    "address_and_app",
    "address_and_operator",
]
"""The subject that is counted. An address is a client's; an app has an environment per mode; a link
is a checkout link, for all visitors; a provider has a door per mode; an operator is the name in a
log-in."""

Kind = Literal["any", "read", "write", "post", "created", "new"]

_KINDS: Mapping[Kind, str] = {
    "any": "every request",
    "read": "GET, HEAD and OPTIONS",
    "write": "all other methods",
    "post": "POST",
    "created": "every creation",
    "new": "everything new",
}
_READ_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})


@attrs.frozen
class RatePolicy:
    """A limit on requests of a kind, to paths of a form, for each subject in each window.

    `rule` is its name in settings, and in `details.rule`; `where` describes `path`, or the routes
    that name the policy.
    """

    rule: str
    subject: Subject
    limit: int
    window_ms: int
    kind: Kind = "any"
    path: re.Pattern[str] = re.compile(".*")
    where: str = ""

    @property
    def request_description(self) -> str:
        """The requests that count, as text for people."""
        return f"{_KINDS[self.kind]} {self.where}".rstrip()

    def applies_to(self, method: str, path: str) -> bool:
        """Whether a request counts. `path` is the route's, with the names of its ids in it."""
        is_read = method in _READ_METHODS
        if self.kind in ("post", "created") and method != "POST":
            return False
        if (self.kind == "read" and not is_read) or (self.kind == "write" and is_read):
            return False
        return self.path.fullmatch(path) is not None


SITE_MULTIPLE = 8
"""A /48 of IPv6 has this many times the limit of an address: a site has a whole /48, with 65,536
networks of /64."""

PER_ADDRESS = RatePolicy("ip_minute", "address", 500, MINUTE)
"""Every request; its refusal names no rule."""

APP_POLICIES = (
    RatePolicy("general_minute", "environment", 500, MINUTE, "read"),
    RatePolicy("sensitive_minute", "environment", 70, MINUTE, "write"),
    RatePolicy("partner_app_minute", "app", 600, MINUTE),
    RatePolicy("partner_app_burst", "app", 120, 10 * SECOND, "read"),
    RatePolicy(
        "payments_app_minute", "app", 180, MINUTE, "post", re.compile("/v2/payments(/.*)?"),
        "to `/v2/payments` and below it",
    ),
    RatePolicy(
        "deposit_address_app_minute", "app", 120, MINUTE, "post",
        re.compile("(/.*)?/deposit-addresses(/.*)?"),
        "to `deposit-addresses`, including `/check`",
    ),
    RatePolicy(
        "chain_reads_minute", "environment", 120, MINUTE, "any",
        re.compile("/v2/accounts/[^/]+/balances|/sdk/v1/get-balances?"),
        "for balances, which queries the nodes of chains",
    ),
)  # fmt: skip
"""For calls with a server key or a client token, after its authentication."""


@lru_cache(maxsize=1_000)
def list_app_policies(method: str, path: str) -> tuple[RatePolicy, ...]:
    """The policies that a route's requests count against; `path` has the names of its ids in it."""
    return tuple(policy for policy in APP_POLICIES if policy.applies_to(method, path))


CREATION_POLICIES = (
    RatePolicy(
        "public_creation_minute", "environment", 600, MINUTE, "created",
        where="of a Payment with an app id alone",
    ),
    RatePolicy(
        "legacy_quotes_minute", "environment", 600, MINUTE, "created", where="of a quote of v1"
    ),
    RatePolicy(
        "legacy_quoted_addresses_minute", "environment", 600, MINUTE, "created",
        where="of an address for one payment, by `get-deposit-address` of v1",
    ),
    RatePolicy(
        "legacy_deposit_addresses_minute", "environment", 600, MINUTE, "created",
        where="of a deposit address, by `generate` of v1",
    ),
    RatePolicy(
        "legacy_settlements_minute", "environment", 600, MINUTE, "created",
        where="of a settlement of v1",
    ),
)  # fmt: skip
"""What a route without a secret creates, for its environment. Only what is created counts: a
refused request, or another page's, does not. Each route has its own, so that a stranger who uses
one up closes no other route."""

ANONYMOUS_LIMIT = 10
"""The requests of an address in a minute to a route that creates without a secret: the same for
each route, so that none is the cheapest to use up."""

ROUTE_POLICIES: Mapping[str, RatePolicy] = {
    policy.rule: policy
    for policy in (
        RatePolicy("payment_state", "payment", 60, MINUTE, where="for a Payment's `state`"),
        RatePolicy("payment_page", "link", 120, MINUTE, where="for a checkout page"),
        RatePolicy(
            "payment_link", "address", 30, MINUTE,
            where="that exchanges a payment link, or opens the page of an unknown link",
        ),
        RatePolicy(
            "provider_notice_misses", "address", 30, MINUTE,
            where="for a notice that is not signed by its provider, or for no provider",
        ),
        RatePolicy(
            "provider_notices", "provider", 600, MINUTE, "new",
            where="that a provider's signed notices report; a repeat does not count",
        ),
        RatePolicy("legacy_chain_reads", "address", 30, MINUTE, where="for `get-balances` of v1"),
        RatePolicy(
            "legacy_quotes", "address_and_app", ANONYMOUS_LIMIT, MINUTE,
            where="for a quote of v1, or for `get-deposit-address`",
        ),
        RatePolicy(
            "legacy_deposit_addresses", "address_and_app", ANONYMOUS_LIMIT, MINUTE,
            where="for `generate` of v1",
        ),
        RatePolicy(
            "legacy_settlements", "address_and_app", ANONYMOUS_LIMIT, MINUTE,
            where="for a settlement of v1, which may query the nodes of chains",
        ),
        RatePolicy(
            "public_creation", "address_and_app", ANONYMOUS_LIMIT, MINUTE,
            where="for a Payment with an app id alone",
        ),
        *CREATION_POLICIES,
        RatePolicy(
            "operator_minute", "environment", 240, MINUTE, where="for a page of the dashboard"
        ),
        RatePolicy(
            "operator_export", "environment", 6, MINUTE, where="for an export of the dashboard"
        ),
        RatePolicy("operator_login", "address", 10, MINUTE, where="to log in to the dashboard"),
        RatePolicy(
            "operator_name", "address_and_operator", 30, 15 * MINUTE,
            where="to log in with one operator's name",
        ),
    )
}  # fmt: skip
"""For single routes, which name theirs. They do not count against an app's policies."""

RULES: Mapping[str, RatePolicy] = {
    policy.rule: policy for policy in (PER_ADDRESS, *APP_POLICIES, *ROUTE_POLICIES.values())
}
ENVIRONMENT_RULES = frozenset(
    rule for rule, policy in RULES.items() if policy.subject in ("environment", "app")
)
"""The rules for which an environment may have its own limits."""


@attrs.frozen
class AbuseBlock:
    """An address that requests more unknown paths than this is blocked for a while."""

    requests: int = 20
    window_ms: int = 10 * MINUTE
    block_ms: int = 1 * HOUR


@attrs.frozen
class RateLimits:
    """A deployment's limits: one for each rule that it names, the defaults for others.

    Raises ValueError for an unknown rule, and for a limit below 1.
    """

    by_rule: Mapping[str, int] = attrs.field(factory=dict)
    abuse: AbuseBlock = AbuseBlock()

    def __attrs_post_init__(self) -> None:
        require_valid_limits(self.by_rule, RULES.keys())

    def limit_of(self, policy: RatePolicy, own: Mapping[str, int] | None = None) -> int:
        """The limit of a policy; `own` are the environment's, which take precedence."""
        default = self.by_rule.get(policy.rule, policy.limit)
        return default if own is None else own.get(policy.rule, default)


def require_valid_limits(by_rule: Mapping[str, int], known: Collection[str]) -> None:
    """Raise ValueError for limits of unknown rules, or below 1."""
    for rule, limit in by_rule.items():
        if rule not in known:
            raise ValueError(f"unknown rate policy {rule}; the rate policies are {sorted(known)}")
        if type(limit) is not int or limit < 1:
            raise ValueError(f"the limit of {rule} must be a whole number of at least 1")
