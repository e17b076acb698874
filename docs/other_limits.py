"""Prints the limits that are not rates, from the constants that hold them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args, get_type_hints

import msgspec

from docs.markdown import table
from payments_core.accounts.record import MAX_ONRAMPS, MAX_WALLETS
from payments_core.clock import DAY, HOUR, MINUTE, SECOND
from payments_core.engine.events import MAX_PAYLOAD_BYTES
from payments_core.engine.idempotency.record import PUBLIC_RETENTION_MS, RETENTION_MS
from payments_core.payment_settings import validation as settings
from payments_core.payments.options.lifecycle import ACTION_TTL_MS
from payments_core.payments.options.limits import MAX_OPTIONS, MAX_OPTIONS_OF_ALL
from payments_core.payments.options.submissions import MAX_SUBMISSIONS
from payments_core.payments.refunding.operations import MAX_PENDING_REFUNDS
from payments_core.payments.refunds.plans import MAX_LEGS
from payments_core.quotes.record import QUOTE_LIFETIME_MS
from payments_core.tenants.client_sessions import EXCHANGE_WITHIN_MS, SessionExpiry
from payments_core.tenants.keys import MAX_KEYS, REVOKED_KEY_RETENTION_MS
from payments_core.tenants.request_log import MAX_PAGES, PAGE_REQUESTS
from payments_core.validation import fields, metadata
from payments_core.webhooks import filters
from payments_core.webhooks.dispatch.replay import MAX_RECOVERY_DAYS, MAX_RESEND_ENDPOINTS
from payments_core.webhooks.endpoint_fields import EndpointDescription, EventNames
from payments_core.webhooks.health import REPORT_INTERVAL_MS
from payments_core.webhooks.lifecycle import MAX_OLDER_SECRETS
from payments_core.webhooks.operations import MAX_OVERLAP_S, WebhookUrl
from payments_core.webhooks.retry_schedule import MAX_RETRY_DELAY_MS
from payments_core.webhooks.settings import WebhookSettings
from payments_core.webhooks.transports.port import MAX_RESPONSE_BODY_BYTES
from payments_core_http.v2.sandbox import bodies as sandbox
from payments_core_http.wire.limits import MAX_BODY_BYTES, MAX_DEPTH
from payments_core_http.wire.query import DEFAULT_LIMIT, PageQuery

_HEAD = ("What", "Limit")
_UNITS = ((DAY, "days"), (HOUR, "hours"), (MINUTE, "minutes"), (SECOND, "seconds"))


def page() -> str:
    """A table for each topic."""
    parts = [
        "# Other limits",
        "Limits of size, number and time; [Limits](limits.md) lists the rate policies.\n"
        "A value beyond a limit is refused with `validation_error`, which names the field, or with"
        " the code next to the limit.\n"
        "[Bodies](bodies.md) lists the rule of every field.",
    ]
    for title, rows in _tables().items():
        parts += [f"## {title}", table(_HEAD, rows.items())]
    return "\n\n".join(parts)


def _tables() -> Mapping[str, Mapping[str, str]]:
    return {
        "Requests": {
            "A body": f"{_count(MAX_BODY_BYTES)} bytes, {MAX_DEPTH} levels deep",
            "A page of a list": f"{_span(_type(PageQuery, 'limit'))} entries;"
            f" {DEFAULT_LIMIT} without `limit`",
            "An `Idempotency-Key`": "1 to 256 printable ASCII characters; its answer is kept for"
            f" {_time(RETENTION_MS)}; for public creation, {_time(PUBLIC_RETENTION_MS)}",
            "Requests in the log": f"the newest {PAGE_REQUESTS * MAX_PAGES} of an environment",
        },
        "Payments": {
            "`amount`": _field(fields.Amount),
            "`expiresInSeconds`": f"{_span(fields.ExpiryInSeconds)} seconds; the default is in"
            " the payment settings",
            "`monitoringSeconds` of the settings": f"{_range(settings.MONITORING_RANGE_S)} seconds",
            "`underpaymentToleranceBps` of the settings": f"at most {settings.MAX_TOLERANCE_BPS}",
            "`reference`, `description`": f"{_field(fields.Reference)}; {_field(fields.Sentence)}",
            "`metadata`": f"{_count(metadata.MAX_BYTES)} bytes as JSON, {metadata.MAX_KEYS} keys,"
            f" {metadata.MAX_DEPTH} levels, texts of {metadata.MAX_CHARACTERS} characters, lists of"
            f" {metadata.MAX_ITEMS} items",
            "Options of a Payment": f"{MAX_OPTIONS} of one payer, {MAX_OPTIONS_OF_ALL} of all"
            " payers: `payment_option_limit_reached`",
            "The action of an option": f"valid for {_time(ACTION_TTL_MS)}: `action_expired`",
            "Transactions submitted for an option": str(MAX_SUBMISSIONS),
            "Refunds in progress": f"{MAX_PENDING_REFUNDS} of a Payment; one refund has at most"
            f" {MAX_LEGS} recipients",
            "A quote": f"valid for {_time(QUOTE_LIFETIME_MS)}",
        },
        "Accounts and keys": {
            "`externalUserId`": _field(fields.ExternalUserId),
            "`username`": _field(fields.Username),
            "Wallets of an account": str(MAX_WALLETS),
            "On-ramps of an account": str(MAX_ONRAMPS),
            "Keys of an environment": f"{MAX_KEYS}; a revoked key still counts for"
            f" {_time(REVOKED_KEY_RETENTION_MS)}",
            "A client session": f"{_span(SessionExpiry)} seconds; its token must be exchanged"
            f" within {_time(EXCHANGE_WITHIN_MS)}",
        },
        "Webhooks": {
            "Active endpoints of an environment": f"{WebhookSettings().max_active_endpoints};"
            " a deployment may [set another limit](settings.md): `webhook_limit_reached`",
            "`url`, `description` of an endpoint": f"{_field(WebhookUrl)};"
            f" {_field(EndpointDescription)}",
            "`subscribedEvents`": f"{_meta(EventNames).max_length} names",
            "`filters`": f"{filters.MAX_RULES} rules, with {filters.MAX_VALUES} `values` each, and"
            f" {_count(filters.MAX_BYTES)} bytes as JSON",
            "An attempt": f"{WebhookSettings().attempt_s} seconds;"
            f" {WebhookSettings().max_attempts} attempts,"
            f" at most {_time(MAX_RETRY_DELAY_MS)} apart",
            "A payload": f"{_count(MAX_PAYLOAD_BYTES)} bytes",
            "The part of an answer that is stored": f"{_count(MAX_RESPONSE_BODY_BYTES)} bytes",
            "Overlap of two signing secrets": f"{_time(MAX_OVERLAP_S * SECOND)}, with"
            f" at most {MAX_OLDER_SECRETS} older secrets: `conflict`",
            "`since` of a recovery": f"at most {MAX_RECOVERY_DAYS} days ago",
            "Endpoints to which a request resends an event": f"{MAX_RESEND_ENDPOINTS}: `conflict`",
            "`webhook.failing` of an endpoint": f"once in {_time(REPORT_INTERVAL_MS)}",
        },
        "A sandbox": {
            f"`{name}`": _span(_type(kind, name))
            for kind, name in (
                (sandbox.Mine, "count"),
                (sandbox.Advance, "advanceSeconds"),
                (sandbox.Reorg, "depth"),
                (sandbox.Fail, "times"),
            )
        },
    }


def _type(owner: type, field: str) -> Any:
    return get_type_hints(owner, include_extras=True)[field]


def _meta(kind: Any) -> msgspec.Meta:
    """The rule of an annotated type, or of one that may be null."""
    found = next((one for one in get_args(kind) if isinstance(one, msgspec.Meta)), None)
    return found or next(_meta(one) for one in get_args(kind) if get_args(one))


def _field(kind: Any) -> str:
    """The rule of a text."""
    meta = _meta(kind)
    words = [f"{meta.max_length} characters"] if meta.max_length else []
    return ", ".join([*([meta.extra["rule"]] if meta.extra else []), *words])


def _span(kind: Any) -> str:
    meta = _meta(kind)
    return _range((int(meta.ge or 0), int(meta.le or 0)))


def _range(ends: tuple[int, int]) -> str:
    return f"{_count(ends[0])} to {_count(ends[1])}"


def _count(number: int) -> str:
    return f"{number:,}"


def _time(ms: int) -> str:
    """A duration in the largest unit that it is a whole number of, unless that is one."""
    if ms == HOUR:
        return "an hour"
    unit, name = next((unit, name) for unit, name in _UNITS if ms % unit == 0 and ms > unit)
    return f"{ms // unit} {name}"
