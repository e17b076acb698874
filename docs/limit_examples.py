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
            "All policies that apply count each request; it is refused when one of them is used"
            " up.\n"
            "A burst is what one window of seconds allows; over a minute the strictest of all"
            " applies.\n"
            "So reads, at 500 a minute, must not come faster than 120 in 10 s: a loop that reads"
            " many Payments meets `partner_app_burst` long before `general_minute`.",
            table(
                ("Request", "Policies that count", "In a minute", "At once"),
                map(_row, REQUESTS),
            ),
            "`RateLimit-*` of each answer are of the policy with the fewest requests left: slow"
            " down when `RateLimit-Remaining` is near 0, and after a 429 wait for `Retry-After`"
            " seconds.\n"
            "Several servers behind one address share its limit, and all keys of an app share"
            " the app's.\n"
            "Read less: [webhooks](../how-to/receive-webhooks.md) report each change, a list"
            " answers 100 resources in one request, and `GET /v2/console/events` shows what you"
            " missed.\n"
            "If that does not suffice, the operator can raise the limits of your environment.",
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
