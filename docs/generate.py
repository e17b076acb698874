"""Writes the files that are printed from tables in the code: docs/reference, alerts, dashboard.

    python -m docs.generate            write them
    python -m docs.generate --check    fail, and name the files, when they differ from the code

A new page is a function that returns Markdown and a row in `PAGES`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path

import attrs

from docs import (
    alerts,
    chains_reference,
    deployment_settings,
    error_guide,
    grafana,
    limit_examples,
    operators_metrics,
    other_limits,
    public_interface,
    python_reference,
    rooms,
    wire_bodies,
    wire_responses,
)
from docs.markdown import code, table
from payments_core.accounts.bank_accounts.lifecycle import BANK_ACCOUNT
from payments_core.accounts.capabilities.lifecycle import CAPABILITY
from payments_core.accounts.verification.lifecycle import VERIFICATION
from payments_core.clock import MINUTE, SECOND
from payments_core.deposits.lifecycle import DEPOSIT
from payments_core.engine.events import CATALOGUE, EventType
from payments_core.engine.state_machine import StateMachine, Transition
from payments_core.errors import ClientTokenExpired, PaymentsError, StorageLimitReached
from payments_core.legacy.role_modules.lifecycle import ROLE_MODULE
from payments_core.limiters.policies import (
    PER_ADDRESS,
    ROUTE_POLICIES,
    SITE_MULTIPLE,
    AbuseBlock,
    Subject,
)
from payments_core.limiters.policies import RULES as RATE_POLICIES
from payments_core.onramps.lifecycle import BANK_TRANSACTION
from payments_core.payments.disputes.lifecycle import DISPUTE, PAYMENT_SESSION_STATUSES
from payments_core.payments.funding.lifecycle import FUNDING_OPERATION
from payments_core.payments.mandates.lifecycle import MANDATE
from payments_core.payments.options.lifecycle import OPTION, SELECTION
from payments_core.payments.payouts.lifecycle import PAYOUT
from payments_core.payments.receipts.lifecycle import RECEIPT
from payments_core.payments.refunds.lifecycle import REFUND
from payments_core.payments.transitions import PAYMENT
from payments_core.tenants.record import STORAGE_LIMIT_BYTES
from payments_core.webhooks.lifecycle import DELIVERY, ENDPOINT
from payments_core_http.dashboard import routes as dashboard
from payments_core_http.errors import status_of
from payments_core_http.openapi.error_responses import wire_name
from payments_core_http.openapi.resources import list_resources
from payments_core_http.routes import ROUTES
from payments_core_http.routing import Route

MACHINES: tuple[StateMachine, ...] = (
    PAYMENT,
    RECEIPT,
    REFUND,
    OPTION,
    SELECTION,
    FUNDING_OPERATION,
    MANDATE,
    DEPOSIT,
    ENDPOINT,
    DELIVERY,
    DISPUTE,
    VERIFICATION,
    CAPABILITY,
    BANK_ACCOUNT,
    PAYOUT,
    ROLE_MODULE,
    BANK_TRANSACTION,
)


def state_machines() -> str:
    """Each transition table as a diagram and as rows, and the statuses of a session."""
    parts = [
        "# State machines",
        "The code uses these tables; a transition without a row is refused.\n"
        "The event is written in the same commit as the change.\n"
        "*same* means that the status does not change; the diagrams leave such rows out.",
    ]
    for machine in MACHINES:
        parts += [
            f"## {machine.name}",
            diagram(machine),
            table(
                ("From", "Trigger", "To", "Event", "Label", "Decision", "Why"), gathered(machine)
            ),
        ]
    parts += [
        "## session",
        "A session has no table of its own: its status follows the status of its Payment,"
        " and a dispute does not change it.",
        table(
            ("Payment", "Session"),
            ((code(status), code(session)) for status, session in PAYMENT_SESSION_STATUSES.items()),
        ),
    ]
    return "\n\n".join(parts)


_CLOSES = {None: "–", "always": "closes", "unless_held": "closes, unless other funds are held"}


def gathered(machine: StateMachine) -> Iterable[tuple[str, ...]]:
    """The rows of a machine; rows that differ only in their source are one."""
    sources: dict[tuple[str, ...], list[str]] = {}
    for row in machine.transitions:
        to = "same" if row.target == row.source else code(row.target)
        event = code(row.emits) if row.emits else "–"
        label = code(row.label) if row.label else "–"
        decision = "opens" if row.opens else _CLOSES[row.closes]
        rest = (row.trigger, to, event, label, decision, row.why)
        sources.setdefault(rest, []).append(code(row.source) if row.source else "–")
    return ((", ".join(found), *rest) for rest, found in sources.items())


def diagram(machine: StateMachine) -> str:
    """A Mermaid state diagram."""

    def arrow(row: Transition) -> str:
        return f"    {row.source or '[*]'} --> {row.target}: {row.trigger}"

    lines = ["```mermaid", "stateDiagram-v2"]
    lines += [arrow(row) for row in machine.transitions if row.source != row.target]
    lines += [f"    {state} --> [*]" for state in sorted(machine.terminal)]
    return "\n".join([*lines, "```"])


def events() -> str:
    """The event catalogue, by payload."""
    families: dict[tuple[str, tuple[str, ...]], list[EventType]] = {}
    for event in CATALOGUE:
        families.setdefault((event.name.split(".")[0], tuple(event.fields)), []).append(event)
    parts = [
        "# Events",
        "Every event that an endpoint can subscribe to, with the fields of its payload.\n"
        "You can also subscribe to events that this release does not send yet.\n"
        "`refund.*`, `vault_funding.*`, `deposit.*` and `dispute.*` carry the `status` of their own"
        " resource, not that of the Payment.\n"
        "The page about [receiving webhooks](../how-to/receive-webhooks.md) shows what a delivery"
        " looks like.",
        "To see any payload, run `payments trigger NAME --json`"
        " [in a sandbox](../how-to/listen-and-trigger.md).\n"
        "`amountAtomic`, and every field whose name ends in `AmountAtomic`, is a string of digits:"
        " an amount in the asset's smallest unit.\n"
        "`chainId` and `statusVersion` are integers, and `labels` is an array of strings.\n"
        "The `accountId` of a Payment to a wallet is null.",
    ]
    titles: list[str] = []
    for (family, _), members in families.items():
        title = f"{family}.*" if family not in titles else members[0].name
        titles.append(family)
        parts += [
            f"## {title}",
            table(wire_responses.HEAD, wire_responses.rows_of_payload(members[0].name)),
            table(
                ("Event", "Sent", "Meaning"),
                (
                    (code(event.name), "yes" if event.emitted else "not yet", event.meaning)
                    for event in members
                ),
            ),
            f"The payload of `{members[0].name}`, for example:\n\n"
            f"```json\n{json.dumps(members[0].sample, indent=2)}\n```",
        ]
    return "\n\n".join(parts)


def routes() -> str:
    """Every route by its resource: its credential, what it needs, and what it returns."""
    parts = [
        "# Routes",
        "The page about [bodies](bodies.md) describes the fields that each route accepts.\n"
        "Every response, including an error, has the headers `X-Request-Id` and `Service-Version`.",
        "Any route may also return these [errors](errors.md), which are about the request itself,"
        f" its credential or the service: {', '.join(errors_of_all())}.",
        table(("Request header", "What it is"), HEADERS.items()),
    ]
    for title, rows in list_resources():
        parts += [f"## {title}", table(ROUTE_HEAD, map(route_row, rows))]
    return "\n\n".join(parts)


def errors_of_all() -> list[str]:
    """The codes that the pipeline returns on every route."""
    own = {error.code for route in (*ROUTES, *dashboard.ROUTES) for error in route.errors}
    own -= {ClientTokenExpired.code}  # the exchange names it, and every client token expires
    return [code(kind.code) for kind in error_kinds() if kind.code not in own]


def route_row(route: Route) -> tuple[str, ...]:
    return (
        code(route.name),
        route.summary,
        CREDENTIALS[route.credential]
        + (" and the Payment's secret" if route.with_payment_secret else "")
        + (", or that and the Payment's secret" * route.may_have_payment_secret),
        needs(route),
        route.idempotency if route.idempotency == "required" else "",
        f"{route.success} {wire_responses.links_of(route)}".rstrip(),
        ", ".join(code(error.code) for error in route.errors),
    )


def bodies() -> str:
    """What each route accepts, field by field."""
    parts = [
        "# Bodies and queries",
        "Bodies are JSON; the service refuses a field that is not listed.\n"
        "Amounts are decimal strings.\n"
        "Lists take `limit` (1-100, 50) and `cursor`, and return"
        " `{data, limit, hasNextPage, nextCursor}`; the console's lists have `webhookEndpoints`"
        " and `deliveries` instead of `data`.",
        "A field with a `–` may be absent or null.\n"
        "A [route](routes.md) that is not listed accepts no body, or `{}`,"
        " and no query parameters except, for a list, `limit` and `cursor`.",
    ]
    for title, rows in list_resources():
        taking = [(route, found) for route in rows if (found := wire_bodies.forms(route))]
        parts += [f"## {title}"] if taking else []
        for route, found in taking:
            parts.append(f"### {route.name}")
            for sentence, fields in found:
                parts += [sentence, table(wire_bodies.HEAD, fields)]
    return "\n\n".join(parts)


def needs(route: Route) -> str:
    """The scopes, permissions and kinds of key that a route requires."""
    if route.needs is None:
        return ""
    asked = [code(name) for name in (*route.needs.scopes, *route.needs.permissions)]
    return ", ".join([*asked, *(["a standard key"] if route.needs.standard_only else [])])


def error_codes() -> str:
    """Every error code with its status and meaning."""
    return "\n\n".join(
        (
            "# Errors",
            "The body of an error is `{error: {code, message, details}}`.\n"
            "`details` contains the facts of the error, and always `requestId`.\n"
            "`details.docUrl` is the URL of the page about the error: below `/docs/errors` of the"
            " deployment, or in the operator's own documentation.\n"
            "The legacy interface responds with `{success: false, error, code, requestId}` and the"
            " same statuses and codes; `error` is the message.",
            table(
                ("Status", "Code", "Meaning", "Details"),
                (
                    (
                        str(status_of(kind)),
                        f"[{code(kind.code)}](#{kind.code})",
                        (kind.__doc__ or "").split("\n\n")[0],
                        ", ".join(code(wire_name(field.name)) for field in attrs.fields(kind)),
                    )
                    for kind in error_kinds()
                ),
            ),
            *error_guide.sections(error_kinds()),
            "## The rules of `policy_denied`",
            "`details.rule` names the first limit that forbids the request.",
            table(("Rule", "Set in", "What it forbids"), RULES),
            "## When a reconciliation is refused",
            "`invalid_state` (409): the Payment's status has no row for the action in its"
            " [table](state-machines.md), such as `accept` of a Payment that is `succeeded`.\n"
            "`reconciliation_action_not_allowed` (422): the status has a row for the action, but"
            " the funds or the work in progress do not allow it.\n"
            "Examples are `accept` with no held funds, `retry_execution` if no transfer has failed,"
            " and any action while a refund is in progress, except `return_misdirected`, and"
            " `refund_excess` of funds that arrived after that refund began.\n"
            "`details.reason` says why.",
        )
    )


def error_kinds() -> list[type[PaymentsError]]:
    """Every error that has a code, by status and code."""
    return sorted(
        (kind for kind in leaves(PaymentsError) if hasattr(kind, "code")),
        key=lambda kind: (status_of(kind), kind.code),
    )


def leaves(kind: type[PaymentsError]) -> list[type[PaymentsError]]:
    """The classes below one that have a code, or none below themselves."""
    if "code" in vars(kind):
        return [kind]
    # attrs makes a second class of each; the one that is replaced has no fields.
    below = [
        one
        for one in kind.__subclasses__()
        if "__attrs_attrs__" in vars(one) or one.__subclasses__()
    ]
    found = [leaf for one in below for leaf in leaves(one)]
    return found or [kind]


ROUTE_HEAD = ("Route", "Purpose", "Credential", "Needs", "Key", "Response", "Own errors")

HEADERS = {
    "`Idempotency-Key`": "1 to 256 printable ASCII characters. The service keeps it for 30 days;"
    " for public creation, one hour. Every `POST`, `PUT` and `PATCH` of v2 with a key or a client"
    " token accepts the header, and so do the routes of v1 that change something. *required* marks"
    " the routes that need it. The same request with the same key gets the same response, with"
    " `Idempotent-Replayed: true`.",
    "`Service-Version`": "The date of the contract that your program was written for. It must be"
    " the date to which your credential is bound. You may omit the header.",
    "`X-Service-Payment-Secret`": "The `clientSecret` of the path's Payment, if the column"
    " Credential requires it.",
}

RULES = (
    ("`allowedChains`", "the vault's policy", "a chain that is not listed"),
    ("`allowedAssets`", "the vault's policy", "an asset that is not listed"),
    ("`allowedDestinations`", "the vault's policy", "a recipient that is not listed"),
    ("`perPaymentLimit`", "the vault's policy", "an amount above the limit of one Payment"),
    ("`dailyLimit`", "the vault's policy", "an amount above the rest of the limit for the UTC day"),
    ("`amountPerPeriod`", "the mandate", "a collection above the rest of the period's amount"),
)

CREDENTIALS = {
    "server_key": "app id and secret (Basic)",
    "bearer_key": "app secret (Bearer)",
    "client_token": "client access token (Bearer)",
    "session_token": "client session token (Bearer)",
    "payment_secret": "Payment client secret (Bearer)",
    "app_id": "none; the app id in the path and an allowed `Origin`",
    "basic_app_id": "app id alone (Basic)",
    "sdk_key": "publishable key (`x-sdk-key`)",
    "none": "none",
}


def limits() -> str:
    """The rate policies and the abuse block, with their defaults."""
    abuse = AbuseBlock()
    return (
        "\n\n".join(
            [
                "# Limits",
                "These are the rate policies with their default limits, and the"
                " [storage limit](#storage).\n"
                "A deployment or an environment may have its own limits"
                " ([Limit requests](../how-to/limit-requests.md)).\n"
                "Sizes, lengths and lifetimes have [other limits](other-limits.md).\n"
                "A request counts against every policy that applies to it, even if it is refused or"
                " replayed; a policy that counts creations counts only what is created.",
                table(
                    ("`details.rule`", "Counts", "For each", "Limit", "Window"),
                    (
                        (
                            code(policy.rule) if policy is not PER_ADDRESS else "none",
                            policy.request_description,
                            SUBJECTS[policy.subject],
                            str(policy.limit),
                            f"{policy.window_ms // SECOND} s",
                        )
                        for policy in RATE_POLICIES.values()
                    ),
                ),
                f"More than {abuse.requests} requests for unknown paths within"
                f" {abuse.window_ms // MINUTE} minutes block the client's address for"
                f" {abuse.block_ms // MINUTE} minutes.",
                "Requests for pages, icons and paths of the legacy interface do not count for this"
                " block, and neither do requests that another site's page makes a browser send.",
                "For IPv6, a /64 network counts as one address, and a /48 network has"
                f" {SITE_MULTIPLE} times the limit of an address.",
                "## Routes without a secret",
                "A stranger may call these routes: the app id, or the publishable key, is in the"
                " shop's page.\n"
                "Each counts what it creates for the environment separately, so that requests to"
                " one route close no other.",
                table(
                    ("Route", "For each address and app", "Created for each environment"),
                    (
                        (
                            code(f"{route.method} {route.path}"),
                            _limit(route.policy),
                            _limit(route.creation_policy),
                        )
                        for route in ROUTES
                        if route.creation_policy is not None
                    ),
                ),
                limit_examples.busy_partner(),
                "## Storage",
                f"An environment may store {STORAGE_LIMIT_BYTES:,} bytes"
                f" ({STORAGE_LIMIT_BYTES // 10**9} GB), unless it has its own limit"
                " ([Limit what is stored](../how-to/limit-requests.md#limit-what-is-stored)).\n"
                "The worker counts them once an hour: the bodies of all rows, without indexes.\n"
                "An environment at its limit gets 429 `storage_limit_reached` from these routes,"
                " and from the library's operations behind them.\n"
                "Everything else goes on: payments, refunds, receipts, webhooks and reads.",
                table(
                    ("Refused at the storage limit", "What"),
                    (
                        (
                            code(f"{route.method} {route.path}"),
                            ROOM_NEEDED_FOR.get((route.method, route.path), "every request"),
                        )
                        for route in ROUTES
                        if StorageLimitReached in route.errors
                    ),
                ),
            ]
        )
        + "\n"
    )


def _limit(rule: str | None) -> str:
    return "none" if rule is None else f"{ROUTE_POLICIES[rule].limit} a minute ({code(rule)})"


ROOM_NEEDED_FOR = {
    ("PATCH", "/v2/accounts/{accountId}"): "a request with `metadata`",
    ("POST", "/v2/accounts/{accountId}/mandates"): "a request with `metadata`",
}

SUBJECTS: dict[Subject, str] = {
    "address": "client's address",
    "environment": "environment of an app",
    "app": "app",
    "payment": "Payment",
    "link": "checkout link",
    "address_and_app": "client's address and app",
    "provider": "provider and mode",
    "address_and_operator": "client's address and operator's name",
}


PAGES: dict[str, Callable[[], str]] = {
    "routes.md": routes,
    "bodies.md": bodies,
    "responses.md": wire_responses.page,
    "errors.md": error_codes,
    "state-machines.md": state_machines,
    "events.md": events,
    "limits.md": limits,
    "other-limits.md": other_limits.page,
    "chains.md": chains_reference.page,
    "settings.md": deployment_settings.page,
    "metrics.md": operators_metrics.page,
    "alerts.md": alerts.page,
    "rooms.md": rooms.page,
    "python.md": python_reference.page,
    "public.md": public_interface.page,
}


def _print_page(write: Callable[[], str]) -> str:
    return f"<!-- Printed from the code by docs/generate.py: change the code. -->\n\n{write()}\n"


ROOT = Path(__file__).parents[1]

FILES: dict[str, Callable[[], str]] = {
    **{f"docs/reference/{name}": partial(_print_page, write) for name, write in PAGES.items()},
    "deploy/prometheus-alerts.yml": alerts.print_rules,
    "deploy/grafana-dashboard.json": grafana.print_dashboard,
}
"""All that is printed, by its path in the checkout."""


def main(arguments: list[str]) -> int:
    if arguments not in ([], ["--check"]):
        print(__doc__)
        return 2
    stale = []
    for name, write in FILES.items():
        path, text = ROOT / name, write()
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        stale.append(name)
        if not arguments:
            path.write_text(text, encoding="utf-8")
    if arguments and stale:
        print(f"Differs from the code: {', '.join(stale)}. Run `make docs` and commit the result.")
        return 1
    for page in stale:
        print(f"Written: {page}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
