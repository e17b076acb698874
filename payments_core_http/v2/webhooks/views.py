"""Webhook endpoints and deliveries as the console returns them (interface "Webhook console")."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import attrs
from msgspec import UNSET, Struct, UnsetType

from payments_core.clock import format_iso
from payments_core.contracts.versions import Versions
from payments_core.engine.event_payloads import render_fields, render_payload
from payments_core.engine.events import CATALOGUE, Event
from payments_core.tenants.record import Environment
from payments_core.webhooks.dispatch.replay import Recovery
from payments_core.webhooks.envelopes import BodyFormat
from payments_core.webhooks.filters import FilterOperator
from payments_core.webhooks.health import EndpointHealth
from payments_core.webhooks.record import Delivery, DeliveryStatus, Endpoint, EndpointStatus
from payments_core.webhooks.settings import WebhookSettings
from payments_core_http.wire.classes import frozen_view


@frozen_view
class DedupeView:
    """The headers by which a receiver detects duplicates."""

    deliveryRetryHeader: str
    """The header that is the same in every retry of a delivery."""
    eventHeader: str
    """The header that is the same in every delivery of an event."""


@frozen_view
class DeliveryPolicyView:
    """What a receiver of this deployment's webhooks may rely on."""

    guarantee: Literal["at_least_once"] = "at_least_once"
    """How often an event is delivered."""
    maxAttempts: int
    """The number of failed attempts after which a delivery is abandoned."""
    localPrivateDestinationsAllowed: bool
    """Whether endpoints may be on this machine; only in a sandbox."""
    dedupe: DedupeView
    """The headers by which a receiver detects duplicates."""


@frozen_view
class EventFilterView:
    """A rule that an event must satisfy to be sent."""

    field: str
    """The path of a field of the event."""
    op: FilterOperator
    """How the field is compared."""
    value: str | None
    """What it is compared with; null where the operator takes no value."""
    values: tuple[str, ...]
    """The values of `in`."""


@frozen_view
class EndpointView:
    """A webhook endpoint; its secret is shown only at creation and rotation."""

    id: str
    appId: str
    environmentId: str
    url: str
    description: str | None
    """Your own text about it; null without one."""
    subscribedEvents: tuple[str, ...]
    filters: tuple[EventFilterView, ...]
    bodyFormat: BodyFormat
    status: EndpointStatus
    createdAt: str
    updatedAt: str


@frozen_view
class OneEndpoint:
    """A response with one webhook endpoint."""

    webhookEndpoint: EndpointView


@frozen_view
class EndpointHealthView:
    """The outcome of the endpoint's newest delivery that has one."""

    status: Literal["unknown", "ok", "failing"]
    """Whether that delivery was accepted."""
    deliveryId: str | None
    """The newest delivery that has an outcome; null without one."""
    failureReason: str | None
    """Why that delivery failed; null unless it did."""
    checkedAt: str | None
    """When that delivery last changed; null without one."""


@frozen_view
class EndpointWithHealth:
    """A webhook endpoint, and whether it accepts its deliveries."""

    webhookEndpoint: EndpointView
    health: EndpointHealthView
    """Whether the endpoint accepts its deliveries."""


@frozen_view
class EndpointWithSecret:
    """A webhook endpoint and its signing secret."""

    webhookEndpoint: EndpointView
    signingSecret: str = attrs.field(repr=False)
    """The secret that signs the endpoint's deliveries; shown only at creation and rotation."""


class DeliveryView(Struct, kw_only=True, frozen=True):
    """A delivery; times that do not apply are absent, never null."""

    id: str
    webhookEndpointId: str
    """The endpoint's id."""
    outboxEventId: str
    """The event's id."""
    eventName: str
    """The event's name."""
    status: DeliveryStatus
    """Its state; an `abandoned` delivery is not sent again by itself."""
    attempts: int
    """How many times it has been sent since its last replay."""
    responseStatus: int | None
    """The HTTP status of the last attempt; null if there was no response."""
    requestBody: str
    """The exact text that was sent."""
    responseBody: str | None
    """The start of the endpoint's response; null without one."""
    failureReason: str | None
    nextAttemptAt: str | UnsetType = UNSET
    """When it is sent again; absent if no attempt is scheduled."""
    deliveredAt: str | UnsetType = UNSET
    """When the endpoint accepted it; absent until then."""
    createdAt: str
    updatedAt: str


@frozen_view
class EventTypeView:
    """An event of the catalog, with the fields of its payload."""

    name: str
    """The event's name."""
    meaning: str
    """What the event means."""
    fields: tuple[str, ...]
    """The names of its payload's fields."""
    emitted: bool
    """Whether this version of the service sends the event."""


@frozen_view
class EndpointsView:
    """The endpoints, what can be subscribed to, and what receivers may rely on."""

    webhookEndpoints: tuple[EndpointView, ...]
    """The endpoints, oldest first."""
    eventCatalog: tuple[EventTypeView, ...]
    """Every event that can be subscribed to."""
    deliveryPolicy: DeliveryPolicyView
    limit: int
    hasNextPage: bool
    nextCursor: str | None


@frozen_view
class EndpointState:
    """Which endpoint, and whether it is active."""

    id: str
    status: EndpointStatus


@frozen_view
class DeliveriesView:
    """An endpoint's deliveries: those of the last day, and the newest older ones of each end."""

    webhookEndpoint: EndpointState
    deliveries: tuple[DeliveryView, ...]
    limit: int
    hasNextPage: bool
    nextCursor: str | None


@frozen_view
class RetriedDelivery:
    """A delivery that is scheduled again."""

    webhookId: str
    deliveryId: str
    status: DeliveryStatus


@frozen_view
class TestedEndpoint:
    """The test event that is queued for an endpoint."""

    webhookId: str
    eventId: str
    deliveryId: str
    status: DeliveryStatus


@frozen_view
class EventView:
    """An event, as in its deliveries."""

    id: str
    """The event's id, which is the same in every delivery."""
    name: str
    """The event's name."""
    apiVersion: str
    """The dated contract of the event; it never changes."""
    createdAt: str
    """When the change that it reports was committed."""
    payload: Mapping[str, Any]


@frozen_view
class ResentEvent:
    """The deliveries of an event that are queued again."""

    eventId: str
    deliveries: tuple[RetriedDelivery, ...]


@frozen_view
class RecoveringEndpoint:
    """A recovery that is in progress."""

    webhookId: str
    since: str
    status: Literal["recovering"] = "recovering"
    """The state of the recovery."""


def delivery_policy(settings: WebhookSettings) -> DeliveryPolicyView:
    """The policy under which this deployment delivers."""
    policy = settings.delivery_policy()
    return DeliveryPolicyView(**{**policy, "dedupe": DedupeView(**policy["dedupe"])})


def event_types(versions: Versions, date: str) -> tuple[EventTypeView, ...]:
    """Every event that can be subscribed to, with its fields in the contract of a date."""
    return tuple(
        EventTypeView(
            name=event.name,
            meaning=event.meaning,
            fields=tuple(render_fields(event.name, event.sample, date, versions)),
            emitted=event.emitted,
        )
        for event in CATALOGUE
    )


def endpoint(record: Endpoint, environment: Environment) -> EndpointView:
    """A webhook endpoint."""
    return EndpointView(
        id=record.id,
        appId=environment.app_id,
        environmentId=environment.id,
        url=record.url,
        description=record.description,
        subscribedEvents=record.subscribed_events,
        filters=tuple(
            EventFilterView(field=one.field, op=one.op, value=one.value, values=one.values)
            for one in record.filters
        ),
        bodyFormat=record.body_format,
        status=record.status,
        createdAt=format_iso(record.created_at_ms),
        updatedAt=format_iso(record.updated_at_ms),
    )


def endpoint_with_health(health: EndpointHealth, environment: Environment) -> EndpointWithHealth:
    """An endpoint, judged by its newest delivery that has an outcome."""
    newest = health.newest
    return EndpointWithHealth(
        webhookEndpoint=endpoint(health.endpoint, environment),
        health=EndpointHealthView(
            status=health.status,
            deliveryId=None if newest is None else newest.id,
            failureReason=None if newest is None else newest.failure,
            checkedAt=None if newest is None else format_iso(newest.updated_at_ms),
        ),
    )


def endpoint_with_secret(
    made: tuple[Endpoint, str], environment: Environment
) -> EndpointWithSecret:
    """An endpoint with its new secret."""
    record, secret = made
    return EndpointWithSecret(webhookEndpoint=endpoint(record, environment), signingSecret=secret)


def delivery(record: Delivery) -> DeliveryView:
    """A delivery."""
    moments: dict[str, Any] = {
        "nextAttemptAt": record.next_attempt_at_ms,
        "deliveredAt": record.delivered_at_ms,
    }
    return DeliveryView(
        id=record.id,
        webhookEndpointId=record.endpoint_id,
        outboxEventId=record.event_id,
        eventName=record.event_name,
        status=record.status,
        attempts=record.attempts,
        responseStatus=record.response_status,
        requestBody=record.request_body,
        responseBody=record.response_body,
        failureReason=record.failure,
        createdAt=format_iso(record.created_at_ms),
        updatedAt=format_iso(record.updated_at_ms),
        **{name: format_iso(at) for name, at in moments.items() if at is not None},
    )


def retried_delivery(record: Delivery) -> RetriedDelivery:
    """The response of a retry."""
    return RetriedDelivery(webhookId=record.endpoint_id, deliveryId=record.id, status=record.status)


def tested_endpoint(record: Delivery) -> TestedEndpoint:
    """The response of a test."""
    return TestedEndpoint(
        webhookId=record.endpoint_id,
        eventId=record.event_id,
        deliveryId=record.id,
        status=record.status,
    )


def event(record: Event, versions: Versions) -> EventView:
    """An event, with the payload of its deliveries."""
    return EventView(
        id=record.id,
        name=record.name,
        apiVersion=record.api_version,
        createdAt=format_iso(record.created_at_ms),
        payload=render_payload(record, versions),
    )


def resent_event(event_id: str, records: Sequence[Delivery]) -> ResentEvent:
    """The response of a resend."""
    return ResentEvent(
        eventId=event_id, deliveries=tuple(retried_delivery(item) for item in records)
    )


def recovering_endpoint(recovery: Recovery) -> RecoveringEndpoint:
    """The response of a recovery."""
    return RecoveringEndpoint(webhookId=recovery.endpoint_id, since=format_iso(recovery.since_ms))
