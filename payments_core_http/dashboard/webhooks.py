"""The webhook console: endpoints, deliveries, and what can be done about them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, get_args

from payments_core.clock import HOUR, format_iso, parse_iso, to_datetime
from payments_core.engine.idempotency.record import Response
from payments_core.errors import ValidationFailed
from payments_core.storage.port import Page, Position
from payments_core.webhooks.dispatch.replay import MAX_RECOVERY_DAYS
from payments_core.webhooks.filters import write_rule
from payments_core.webhooks.operations import MAX_OVERLAP_S
from payments_core.webhooks.record import Delivery, DeliveryStatus
from payments_core.webhooks.trimming import KEPT
from payments_core_http.calls import PageCall
from payments_core_http.dashboard.choices import find_choice
from payments_core_http.dashboard.endpoints import list_changes
from payments_core_http.dashboard.exports import Export, iso, stream
from payments_core_http.dashboard.lists import Filter, read_list
from payments_core_http.dashboard.rendering import redirect, render_page, run_form
from payments_core_http.dashboard.words import explain_delivery, name_state

if TYPE_CHECKING:
    from payments_core.service import PaymentsService

DELIVERY_STATUSES: tuple[DeliveryStatus, ...] = get_args(DeliveryStatus)
_FILTERS = (Filter("status", "Status", "choice", DELIVERY_STATUSES, every="Every status"),)
OVERLAPS_S = {"0": "None: the old secret is invalid at once", "3600": "1 hour", "86400": "1 day"}
"""How long a replaced secret still signs, in seconds and in words."""


def list_endpoints(service: PaymentsService, call: PageCall) -> Response:
    """The endpoints with their health, oldest first."""
    listed = read_list(
        call,
        lambda call, _, after, limit: call.resources.webhooks.list_health(limit=limit, after=after),
    )
    return render_page(
        call,
        "webhooks.html",
        section="webhooks",
        listed=listed,
        name_state=name_state,
    )


def show_endpoint(service: PaymentsService, call: PageCall) -> Response:
    """An endpoint and its deliveries, most recently updated first."""
    health = call.resources.webhooks.read_health(call.path["webhookId"])
    endpoint = health.endpoint
    return render_page(
        call,
        "webhook.html",
        section="webhooks",
        endpoint=endpoint,
        health=health,
        state=name_state(health),
        rules=[write_rule(rule) for rule in endpoint.filters],
        listed=read_list(call, _read_deliveries, _FILTERS),
        kept=KEPT[endpoint.status],
        changes=list_changes(endpoint.status),
    )


def export_deliveries(service: PaymentsService, call: PageCall) -> Response:
    """An endpoint's deliveries as CSV, without their bodies."""
    return stream(call, _DELIVERIES)


def show_delivery(service: PaymentsService, call: PageCall) -> Response:
    """What was sent, the response, and what comes next."""
    endpoint, delivery = call.resources.webhooks.read_delivery(
        call.path["webhookId"], call.path["deliveryId"]
    )
    max_attempts = service.settings.webhooks.max_attempts
    return render_page(
        call,
        "delivery.html",
        section="webhooks",
        endpoint=endpoint,
        delivery=delivery,
        max_attempts=max_attempts,
        explanation=explain_delivery(delivery, endpoint, max_attempts),
        may_retry=delivery.status in ("failed", "abandoned") and endpoint.status == "active",
    )


def retry(service: PaymentsService, call: PageCall) -> Response:
    """A delivery queued again with its full number of attempts."""
    endpoint_id, delivery_id = call.path["webhookId"], call.path["deliveryId"]
    return run_form(
        call,
        lambda idempotent: call.resources.webhooks.retry_delivery(
            endpoint_id, delivery_id, idempotency_key=idempotent
        ),
        lambda _: redirect(
            call, f"/dashboard/webhooks/{endpoint_id}/deliveries/{delivery_id}", "retry"
        ),
    )


def test(service: PaymentsService, call: PageCall) -> Response:
    """A test event, queued for the endpoint."""
    endpoint_id = call.path["webhookId"]
    return run_form(
        call,
        lambda idempotent: call.resources.webhooks.test(endpoint_id, idempotency_key=idempotent),
        lambda delivery: redirect(
            call, f"/dashboard/webhooks/{endpoint_id}/deliveries/{delivery.id}", "test"
        ),
    )


def show_rotate(service: PaymentsService, call: PageCall) -> Response:
    """A new secret, to be confirmed."""
    endpoint = call.resources.webhooks.read(call.path["webhookId"])
    return render_page(
        call, "rotate.html", section="webhooks", endpoint=endpoint, overlaps=OVERLAPS_S
    )


def rotate(service: PaymentsService, call: PageCall) -> Response:
    """The new secret, on the one page that shows it."""
    overlap_s = _read_overlap_s(call)
    return run_form(
        call,
        lambda idempotent: call.resources.webhooks.rotate_secret(
            call.path["webhookId"], overlap_s=overlap_s, idempotency_key=idempotent
        ),
        lambda made: render_page(
            call, "secret.html", section="webhooks", endpoint=made[0], secret=made[1]
        ),
    )


def show_recover(service: PaymentsService, call: PageCall) -> Response:
    """The time from which missed events are sent again."""
    endpoint = call.resources.webhooks.read(call.path["webhookId"])
    return render_page(
        call,
        "recover.html",
        section="webhooks",
        endpoint=endpoint,
        suggestion=format_iso(service.parts.ports.clock.now() - 24 * HOUR)[:16],
        max_days=MAX_RECOVERY_DAYS,
    )


def recover(service: PaymentsService, call: PageCall) -> Response:
    """A recovery of the events that the endpoint has missed."""
    endpoint_id, since = call.path["webhookId"], _read_since(call)
    return run_form(
        call,
        lambda idempotent: call.resources.webhooks.recover(
            endpoint_id, since, idempotency_key=idempotent
        ),
        lambda _: redirect(call, f"/dashboard/webhooks/{endpoint_id}", "recover"),
    )


def _read_overlap_s(call: PageCall) -> int:
    text = call.body.get("overlap", "")
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(MAX_OVERLAP_S))):
        raise ValidationFailed.at("overlap", "must be a number of seconds")
    return int(text)


def _read_since(call: PageCall) -> datetime:
    """The time of a `datetime-local`, which has no zone: it is UTC. Raises ValidationFailed."""
    try:
        return to_datetime(parse_iso(f"{call.body.get('since', '')}Z"))
    except (ValueError, OverflowError):
        raise ValidationFailed.at("since", "must be a time such as 2026-09-21T14:00") from None


def _read_deliveries(
    call: PageCall, filters: Mapping[str, str], after: Position | None, limit: int
) -> Page[Delivery]:
    chosen = find_choice(DELIVERY_STATUSES, filters.get("status"))
    _, page = call.resources.webhooks.list_deliveries(
        call.path["webhookId"], status=chosen, limit=limit, after=after
    )
    return page


_DELIVERIES: Export[Delivery] = Export(
    "deliveries",
    _FILTERS,
    _read_deliveries,
    {
        "id": lambda one: one.id,
        "outboxEventId": lambda one: one.event_id,
        "eventName": lambda one: one.event_name,
        "status": lambda one: one.status,
        "attempts": lambda one: one.attempts,
        "responseStatus": lambda one: one.response_status,
        "createdAt": lambda one: iso(one.created_at_ms),
        "updatedAt": lambda one: iso(one.updated_at_ms),
        "deliveredAt": lambda one: iso(one.delivered_at_ms),
    },
)
