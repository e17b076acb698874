"""Events: the list, and one event with its deliveries."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import attrs

from payments_core.engine.events import BY_NAME, Event
from payments_core.engine.idempotency.record import Response
from payments_core.storage.port import Page, Position
from payments_core_http.calls import PageCall
from payments_core_http.dashboard.exports import Export, iso, stream
from payments_core_http.dashboard.lists import Filter, read_list
from payments_core_http.dashboard.rendering import redirect, render_page, run_form
from payments_core_http.dashboard.words import EVERY_SUBSCRIBER, RECIPIENT_WORDS

if TYPE_CHECKING:
    from payments_core.service import PaymentsService

_FILTERS = (Filter("name", "Name", "choice", tuple(sorted(BY_NAME)), every="Every event"),)
_SUBJECT_PAGES = {
    "paymentId": ("Payment", "dashboard/payments/{paymentId}"),
    "webhookId": ("Endpoint", "dashboard/webhooks/{webhookId}"),
    "deliveryId": ("Delivery", "dashboard/webhooks/{webhookId}/deliveries/{deliveryId}"),
    "accountId": ("Account", "dashboard/accounts/{accountId}"),
}
"""By the field that has the id: its name, and its page from the root."""


@attrs.frozen
class Subject:
    """What an event is about: its kind, its id, and its page from the root."""

    name: str
    id: str
    path: str


def list_events(service: PaymentsService, call: PageCall) -> Response:
    """The environment's events, newest first."""
    return render_page(
        call,
        "events.html",
        section="events",
        listed=read_list(call, _read_page, _FILTERS),
        list_subjects=list_subjects,
    )


def export_events(service: PaymentsService, call: PageCall) -> Response:
    """The events as CSV, without their payloads."""
    return stream(call, _EVENTS)


def list_subjects(event: Event) -> list[Subject]:
    """What an event is about and the dashboard has a page of, the most important first."""
    facts = {**event.payload, "accountId": event.account_id}
    return [
        Subject(name, str(facts[field]), path.format_map(facts))
        for field, (name, path) in _SUBJECT_PAGES.items()
        if facts.get(field)
    ]


def show_event(service: PaymentsService, call: PageCall) -> Response:
    """An event, its body, and its deliveries."""
    event, deliveries = call.resources.events.read_with_deliveries(call.path["eventId"])
    return render_page(
        call,
        "event.html",
        section="events",
        event=event,
        deliveries=deliveries,
        meaning=BY_NAME[event.name].meaning if event.name in BY_NAME else "",
        subjects=list_subjects(event),
        recipients=RECIPIENT_WORDS.get(event.name, EVERY_SUBSCRIBER),
    )


def resend(service: PaymentsService, call: PageCall) -> Response:
    """The event, queued again for every active endpoint that is subscribed."""
    event_id = call.path["eventId"]
    return run_form(
        call,
        lambda idempotent: call.resources.events.resend(event_id, idempotency_key=idempotent),
        lambda _: redirect(call, f"/dashboard/events/{event_id}", "resend"),
    )


def _read_page(
    call: PageCall, filters: Mapping[str, str], after: Position | None, limit: int
) -> Page[Event]:
    return call.resources.events.list(name=filters.get("name"), after=after, limit=limit)


_EVENTS: Export[Event] = Export(
    "events",
    _FILTERS,
    _read_page,
    {
        "id": lambda one: one.id,
        "name": lambda one: one.name,
        "accountId": lambda one: one.account_id,
        "paymentId": lambda one: str(one.payload.get("paymentId", "")),
        "apiVersion": lambda one: one.api_version,
        "createdAt": lambda one: iso(one.created_at_ms),
    },
)
