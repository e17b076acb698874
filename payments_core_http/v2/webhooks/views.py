"""Webhook endpoints and deliveries as the console returns them (interface "Webhook console")."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import attrs
from msgspec import UNSET, Struct, UnsetType

from payments_core.clock import format_iso
from payments_core.engine.events import CATALOGUE, Event
from payments_core.tenants.record import Environment
from payments_core.webhooks.health import EndpointHealth
from payments_core.webhooks.record import Delivery, DeliveryStatus, Endpoint, EndpointStatus
from payments_core.webhooks.replay import Recovery
from payments_core.webhooks.settings import WebhookSettings
from payments_core_http.wire.classes import frozen_view


@frozen_view
class DedupeView:
    """The headers by which a receiver detects duplicates."""

    deliveryRetryHeader: str
    eventHeader: str


@frozen_view
class DeliveryPolicyView:
    """What a receiver of this deployment's webhooks may rely on."""

    guarantee: Literal["at_least_once"] = "at_least_once"
    maxAttempts: int
    localPrivateDestinationsAllowed: bool
    dedupe: DedupeView


@frozen_view
class EndpointView:
    """A webhook endpoint; its secret is shown only at creation and rotation."""

    id: str
    appId: str
    environmentId: str
    url: str
    description: str | None
    subscribedEvents: tuple[str, ...]
    status: EndpointStatus
    createdAt: str
    updatedAt: str


@frozen_view
class OneEndpoint:
    """An answer with one webhook endpoint."""

    webhookEndpoint: EndpointView


@frozen_view
class EndpointHealthView:
    """The outcome of the endpoint's newest delivery that has one."""

    status: Literal["unknown", "ok", "failing"]
    deliveryId: str | None
    failureReason: str | None
    checkedAt: str | None


@frozen_view
class EndpointWithHealth:
    """A webhook endpoint, and whether it accepts its deliveries."""

    webhookEndpoint: EndpointView
    health: EndpointHealthView


@frozen_view
class EndpointWithSecret:
    """A webhook endpoint and its signing secret."""

    webhookEndpoint: EndpointView
    signingSecret: str = attrs.field(repr=False)


class DeliveryView(Struct, kw_only=True, frozen=True):
    """A delivery; times that do not apply are absent, never null."""

    id: str
    webhookEndpointId: str
    outboxEventId: str
    eventName: str
    status: DeliveryStatus
    attempts: int
    responseStatus: int | None
    requestBody: str
    responseBody: str | None
    failureReason: str | None
    nextAttemptAt: str | UnsetType = UNSET
    deliveredAt: str | UnsetType = UNSET
    createdAt: str
    updatedAt: str


@frozen_view
class EventTypeView:
    """An event of the catalog, with the fields of its payload."""

    name: str
    meaning: str
    fields: tuple[str, ...]
    emitted: bool


@frozen_view
class EndpointsView:
    """The endpoints, what can be subscribed to, and what receivers may rely on."""

    webhookEndpoints: tuple[EndpointView, ...]
    eventCatalog: tuple[EventTypeView, ...]
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
    name: str
    apiVersion: str
    createdAt: str
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


def delivery_policy(settings: WebhookSettings) -> DeliveryPolicyView:
    """The policy under which this deployment delivers."""
    policy = settings.delivery_policy()
    return DeliveryPolicyView(**{**policy, "dedupe": DedupeView(**policy["dedupe"])})


def event_types() -> tuple[EventTypeView, ...]:
    """Every event that can be subscribed to."""
    return tuple(
        EventTypeView(
            name=event.name,
            meaning=event.meaning,
            fields=tuple(event.fields),
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
        status=record.status,
        createdAt=format_iso(record.created_at),
        updatedAt=format_iso(record.updated_at),
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
            checkedAt=None if newest is None else format_iso(newest.updated_at),
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
        "nextAttemptAt": record.next_attempt_at,
        "deliveredAt": record.delivered_at,
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
        createdAt=format_iso(record.created_at),
        updatedAt=format_iso(record.updated_at),
        **{name: format_iso(at) for name, at in moments.items() if at is not None},
    )


def retried_delivery(record: Delivery) -> RetriedDelivery:
    """The answer of a retry."""
    return RetriedDelivery(webhookId=record.endpoint_id, deliveryId=record.id, status=record.status)


def tested_endpoint(record: Delivery) -> TestedEndpoint:
    """The answer of a test."""
    return TestedEndpoint(
        webhookId=record.endpoint_id,
        eventId=record.event_id,
        deliveryId=record.id,
        status=record.status,
    )


def event(record: Event) -> EventView:
    """An event."""
    return EventView(
        id=record.id,
        name=record.name,
        apiVersion=record.api_version,
        createdAt=format_iso(record.created_at),
        payload=record.payload,
    )


def resent_event(event_id: str, records: Sequence[Delivery]) -> ResentEvent:
    """The answer of a resend."""
    return ResentEvent(
        eventId=event_id, deliveries=tuple(retried_delivery(item) for item in records)
    )


def recovering_endpoint(recovery: Recovery) -> RecoveringEndpoint:
    """The answer of a recovery."""
    return RecoveringEndpoint(webhookId=recovery.endpoint_id, since=format_iso(recovery.since))
