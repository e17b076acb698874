"""Rows of the webhook console."""

from __future__ import annotations

from payments_core import errors
from payments_core.errors import NotFound
from payments_core_http.routing import ListOf, Route
from payments_core_http.v2.requirements import CONSOLE_KEY
from payments_core_http.v2.webhooks import bodies, views
from payments_core_http.v2.webhooks import handlers as console
from payments_core_http.wire.query import PageQuery

CONSOLE = (
    Route(
        "POST", "/v2/console/apps/{appId}/environments/{environmentId}/webhooks", console.create,
        needs=CONSOLE_KEY, body=bodies.CreateWebhook, success=201,
        errors=(
            NotFound, errors.WebhookUrlNotAllowed, errors.WebhookUrlInUse,
            errors.WebhookLimitReached,
        ),
        response=views.EndpointWithSecret, operation="createWebhook",
        summary="Register a webhook endpoint; returns its signing secret.",
    ),
    Route(
        "GET", "/v2/console/webhooks", console.list_endpoints, needs=CONSOLE_KEY, query=PageQuery,
        response=views.EndpointsView, operation="listWebhooks",
        summary="List the endpoints, with the event catalog and the delivery policy.",
    ),
    Route(
        "GET", "/v2/console/webhooks/{webhookId}", console.read, needs=CONSOLE_KEY,
        errors=(NotFound,),
        response=views.EndpointWithHealth, operation="readWebhook",
        summary="Read an endpoint.",
    ),
    Route(
        "PATCH", "/v2/console/webhooks/{webhookId}", console.change, needs=CONSOLE_KEY,
        body=bodies.ChangeWebhook,
        errors=(
            NotFound, errors.InvalidState, errors.WebhookUrlInUse, errors.WebhookLimitReached,
            errors.ResourceConflict,
        ),
        response=views.OneEndpoint, operation="changeWebhook",
        summary="Change an endpoint's description, subscriptions or status.",
    ),
    Route(
        "POST", "/v2/console/webhooks/{webhookId}/rotate-secret", console.rotate_secret,
        needs=CONSOLE_KEY, body=bodies.RotateWebhookSecret,
        errors=(NotFound, errors.InvalidState, errors.ResourceConflict),
        response=views.EndpointWithSecret, operation="rotateWebhookSecret",
        summary="Replace the signing secret; the old one ends at once, or with an overlap.",
    ),
    Route(
        "GET", "/v2/console/webhooks/{webhookId}/deliveries", console.list_deliveries,
        needs=CONSOLE_KEY, query=PageQuery, errors=(NotFound,),
        response=views.DeliveriesView, operation="listWebhookDeliveries",
        summary="List the kept deliveries, most recently updated first.",
    ),
    Route(
        "POST", "/v2/console/webhooks/{webhookId}/deliveries/{deliveryId}/retry", console.retry,
        needs=CONSOLE_KEY, errors=(NotFound, errors.ResourceConflict),
        response=views.RetriedDelivery, operation="retryWebhookDelivery",
        summary="Retry a failed or abandoned delivery that is kept.",
    ),
    Route(
        "POST", "/v2/console/webhooks/{webhookId}/test", console.test, needs=CONSOLE_KEY,
        success=201, errors=(NotFound, errors.ResourceConflict),
        response=views.TestedEndpoint, operation="testWebhook",
        summary="Send a test event to this endpoint only, regardless of its subscriptions.",
    ),
    Route(
        "POST", "/v2/console/webhooks/{webhookId}/recover", console.recover, needs=CONSOLE_KEY,
        body=bodies.RecoverWebhook, success=202, errors=(NotFound, errors.ResourceConflict),
        response=views.RecoveringEndpoint, operation="recoverWebhook",
        summary="Send the subscribed events since a time that the endpoint has not received.",
    ),
    Route(
        "GET", "/v2/console/events", console.list_events, needs=CONSOLE_KEY,
        query=bodies.ListEvents,
        response=ListOf(views.EventView), operation="listEvents",
        summary="List events, newest first; or each event once, oldest first, after a cursor.",
    ),
    Route(
        "GET", "/v2/console/events/{eventId}", console.read_event, needs=CONSOLE_KEY,
        errors=(NotFound,),
        response=views.EventView, operation="readEvent",
        summary="Read an event.",
    ),
    Route(
        "POST", "/v2/console/events/{eventId}/resend", console.resend, needs=CONSOLE_KEY,
        body=bodies.ResendEvent, errors=(NotFound, errors.ResourceConflict),
        response=views.ResentEvent, operation="resendEvent",
        summary="Deliver an event again, to one endpoint or to all that are subscribed.",
    ),
)  # fmt: skip
