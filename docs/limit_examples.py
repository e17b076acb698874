"""Prints which rate policies a busy partner meets, for the requests that it makes most."""

from __future__ import annotations

from collections.abc import Iterator

from docs.markdown import code, table
from payments_core.clock import MINUTE, SECOND
from payments_core.limiters.policies import APP_POLICIES, PER_ADDRESS, RatePolicy

REQUESTS = (
    ("GET", "/v2/payments/{paymentId}"),
    ("GET", "/v2/accounts/{accountId}/balances"),
    ("POST", "/v2/payments"),
    ("POST", "/v2/accounts/{accountId}/deposit-addresses"),
    ("POST", "/v2/client-sessions"),
)


def busy_partner() -> str:
    """A table of the policies that count for a request, and how they limit each other."""
    return "\n\n".join(
        [
            "## What a busy partner meets",
            "A request counts against every policy that applies to it, and is refused if one of"
            " them allows no more requests.\n"
            'In the table, "In a minute" is the strictest limit over a minute, and "At once" is'
            " the largest burst.\n"
            "For example, a partner may send 500 reads a minute, but at most 120 in 10 s: a loop"
            " that reads many Payments reaches `partner_app_burst` long before `general_minute`.",
            table(
                ("Request", "Policies that count", "In a minute", "At once"),
                map(_row, REQUESTS),
            ),
            "The headers `RateLimit-*` of each answer describe the policy with the fewest requests"
            " left.\n"
            "Slow down when `RateLimit-Remaining` is near 0, and after a 429 wait for `Retry-After`"
            " seconds.\n"
            "Several servers behind one address share the limit of the address, and all keys of an"
            " app share the limits of the app.\n"
            "Send fewer reads: [webhooks](../how-to/receive-webhooks.md) report each change, a list"
            " answers 100 resources in one request, and `GET /v2/console/events` shows the events"
            " that you missed.\n"
            "If that is not enough, the operator can raise the limits of your environment.",
        ]
    )


def _row(request: tuple[str, str]) -> tuple[str, ...]:
    method, path = request
    policies = [PER_ADDRESS, *(one for one in APP_POLICIES if one.applies_to(method, path))]
    tightest = min(policies, key=lambda policy: policy.limit * MINUTE // policy.window_ms)
    burst = min(policies, key=lambda policy: policy.limit)
    return (
        code(f"{method} {path}"),
        ", ".join(_names(policies)),
        f"{tightest.limit * MINUTE // tightest.window_ms}, by {_name(tightest)}",
        f"{burst.limit} in {burst.window_ms // SECOND} s, by {_name(burst)}",
    )


def _names(policies: list[RatePolicy]) -> Iterator[str]:
    return map(_name, policies)


def _name(policy: RatePolicy) -> str:
    return "the address" if policy is PER_ADDRESS else code(policy.rule)
