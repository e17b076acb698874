"""The webhook console (interface "Webhook console")."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import UNSET

from payments_core.clock import parse_bound_or_none, parse_iso, to_datetime
from payments_core.engine.idempotency.record import IdempotentRequest, Response
from payments_core.errors import NotFound
from payments_core.resources import Resources
from payments_core.webhooks.endpoint_fields import EndpointChanges
from payments_core.webhooks.feed import FeedPage
from payments_core.webhooks.filters import EventFilter
from payments_core.webhooks.record import Endpoint
from payments_core_http.calls import ApiCall
from payments_core_http.v2.webhooks import bodies, views
from payments_core_http.wire.query import PageQuery

if TYPE_CHECKING:
    from payments_core.service import PaymentsService


def create(service: PaymentsService, call: ApiCall[bodies.CreateWebhook, None]) -> Response:
    """A new endpoint and its signing secret."""
    environment = call.authority.environment
    named = (call.path["appId"], call.path["environmentId"])
    if named != (environment.app_id, environment.id):
        raise NotFound("environment")
    return call.run_idempotent(
        lambda idempotent: create_endpoint(call.resources, call.body, idempotent),
        lambda made: views.endpoint_with_secret(made, environment),
    )


def create_endpoint(
    resources: Resources, body: bodies.CreateWebhook, idempotent: IdempotentRequest | None
) -> tuple[Endpoint, str]:
    """The endpoint that a body describes, and its signing secret."""
    return resources.webhooks.create(
        url=body.url,
        description=body.description,
        subscribed_events=() if body.subscribedEvents is UNSET else body.subscribedEvents,
        filters=() if body.filters is UNSET else _build_filters(body.filters),
        body_format="envelope" if body.bodyFormat is UNSET else body.bodyFormat,
        idempotency_key=idempotent,
    )


def list_endpoints(service: PaymentsService, call: ApiCall[None, PageQuery]) -> Response:
    """The endpoints, what can be subscribed to, and what receivers may rely on."""
    page = call.resources.webhooks.list(limit=call.query.limit, after=call.decode_position())
    environment = call.authority.environment
    return call.respond(
        views.EndpointsView(
            webhookEndpoints=tuple(views.endpoint(item, environment) for item in page.records),
            eventCatalog=views.event_types(service.settings.versions, call.caller.api_version),
            deliveryPolicy=views.delivery_policy(service.settings.webhooks),
            **call.page_fields(page.next),
        )
    )


def read(service: PaymentsService, call: ApiCall[None, None]) -> Response:
    """An endpoint."""
    health = call.resources.webhooks.read_health(call.path["webhookId"])
    return call.respond(views.endpoint_with_health(health, call.authority.environment))


def change(service: PaymentsService, call: ApiCall[bodies.ChangeWebhook, None]) -> Response:
    """The endpoint with the given fields changed."""
    environment = call.authority.environment
    return call.run_idempotent(
        lambda idempotent: change_endpoint(
            call.resources, call.path["webhookId"], call.body, idempotent
        ),
        lambda record: views.OneEndpoint(webhookEndpoint=views.endpoint(record, environment)),
    )


def change_endpoint(
    resources: Resources,
    endpoint_id: str,
    body: bodies.ChangeWebhook,
    idempotent: IdempotentRequest | None,
) -> Endpoint:
    """The endpoint with the fields of a body."""
    changes = EndpointChanges(
        body.description,
        body.subscribedEvents,
        body.status,
        UNSET if body.filters is UNSET else _build_filters(body.filters),
        body.bodyFormat,
    )
    return resources.webhooks.change(endpoint_id, changes, idempotency_key=idempotent)


def _build_filters(rules: Sequence[bodies.EventFilterInput]) -> tuple[EventFilter, ...]:
    return tuple(EventFilter(one.field, one.op, one.value, one.values) for one in rules)


def rotate_secret(
    service: PaymentsService, call: ApiCall[bodies.RotateWebhookSecret, None]
) -> Response:
    """A new signing secret; the previous one is invalid at once, or after its overlap."""
    environment = call.authority.environment
    return call.run_idempotent(
        lambda idempotent: call.resources.webhooks.rotate_secret(
            call.path["webhookId"],
            overlap_s=call.body.overlapSeconds,
            idempotency_key=idempotent,
        ),
        lambda made: views.endpoint_with_secret(made, environment),
    )


def list_deliveries(service: PaymentsService, call: ApiCall[None, PageQuery]) -> Response:
    """The endpoint's deliveries, most recently updated first."""
    endpoint, page = call.resources.webhooks.list_deliveries(
        call.path["webhookId"], limit=call.query.limit, after=call.decode_position()
    )
    return call.respond(
        views.DeliveriesView(
            webhookEndpoint=views.EndpointState(id=endpoint.id, status=endpoint.status),
            deliveries=tuple(map(views.delivery, page.records)),
            **call.page_fields(page.next),
        )
    )


def retry(service: PaymentsService, call: ApiCall[None, None]) -> Response:
    """A delivery scheduled again, with its full budget of attempts."""
    return call.run_idempotent(
        lambda idempotent: call.resources.webhooks.retry_delivery(
            call.path["webhookId"],
            call.path["deliveryId"],
            idempotency_key=idempotent,
        ),
        views.retried_delivery,
    )


def test(service: PaymentsService, call: ApiCall[None, None]) -> Response:
    """A test event, queued for the endpoint."""
    return call.run_idempotent(
        lambda idempotent: call.resources.webhooks.test(
            call.path["webhookId"], idempotency_key=idempotent
        ),
        views.tested_endpoint,
    )


def recover(service: PaymentsService, call: ApiCall[bodies.RecoverWebhook, None]) -> Response:
    """A recovery of the events that the endpoint has missed."""
    since = to_datetime(parse_iso(call.body.since))
    return call.run_idempotent(
        lambda idempotent: call.resources.webhooks.recover(
            call.path["webhookId"], since, idempotency_key=idempotent
        ),
        views.recovering_endpoint,
    )


def list_events(service: PaymentsService, call: ApiCall[None, bodies.ListEvents]) -> Response:
    """The environment's events, newest first; with `after` those behind a place, oldest first."""
    query = call.query
    if query.after is not None:
        return _poll_events(service, call, query.after)
    page = call.resources.events.list(
        account_id=query.accountId,
        name=query.name,
        created_after=parse_bound_or_none(query.createdAfter),
        created_before=parse_bound_or_none(query.createdBefore),
        after=call.decode_position(),
        limit=query.limit,
    )
    return call.respond_page(page, lambda one: views.event(one, service.settings.versions))


def _poll_events(
    service: PaymentsService, call: ApiCall[None, bodies.ListEvents], after: str
) -> Response:
    events, query = call.resources.events, call.query
    if after == "end":
        page = FeedPage((), events.find_end(), has_more=False)
    else:
        page = events.poll(
            after=None if after == "start" else call.decode_cursor(after, "after"),
            account_id=query.accountId,
            name=query.name,
            limit=query.limit,
        )
    return call.respond(
        {
            "data": [views.event(one, service.settings.versions) for one in page.events],
            "limit": query.limit,
            "hasNextPage": page.has_more,
            "nextCursor": call.encode_cursor(page.next),
        }
    )


def read_event(service: PaymentsService, call: ApiCall[None, None]) -> Response:
    """An event."""
    record = call.resources.events.read(call.path["eventId"])
    return call.respond(views.event(record, service.settings.versions))


def resend(service: PaymentsService, call: ApiCall[bodies.ResendEvent, None]) -> Response:
    """An event, queued again."""
    event_id, endpoint_id = call.path["eventId"], call.body.webhookId
    return call.run_idempotent(
        lambda idempotent: call.resources.events.resend(
            event_id, endpoint_id=endpoint_id, idempotency_key=idempotent
        ),
        lambda records: views.resent_event(event_id, records),
    )
