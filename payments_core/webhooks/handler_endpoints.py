"""The endpoints of handlers: found or made when a process registers a handler."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Annotated

from msgspec import Meta

from payments_core.engine.ports import Ports
from payments_core.errors import ValidationFailed, WebhookUrlInUse
from payments_core.storage.port import Page, Position
from payments_core.tenants.authorization import Authority
from payments_core.webhooks.endpoint_fields import EndpointChanges
from payments_core.webhooks.filters import EventFilters, check_filters
from payments_core.webhooks.handlers import EventHandlers, Handle, handler_url
from payments_core.webhooks.operations import SubscribedEvents, WebhookEndpoints
from payments_core.webhooks.record import Endpoint

HandlerName = Annotated[
    str,
    Meta(
        pattern=r"^[a-z0-9][a-z0-9_-]{0,63}$",
        extra={"rule": "1 to 64 small letters, digits, - or _"},
    ),
]


class HandlerEndpoints:
    """Ties functions of this process to endpoints."""

    def __init__(self, ports: Ports, endpoints: WebhookEndpoints, handlers: EventHandlers) -> None:
        self._storage = ports.storage
        self._versions = ports.versions
        self._endpoints = endpoints
        self._handlers = handlers

    def register(
        self,
        authority: Authority,
        name: HandlerName,
        handle: Handle,
        *,
        subscribed_events: SubscribedEvents = (),
        filters: EventFilters = (),
    ) -> Endpoint:
        """Register the function for the environment's events; see `PaymentsService.on_event`."""
        if not callable(handle):
            raise ValidationFailed.at("handle", "must be a function")
        url, wanted = handler_url(name), tuple(dict.fromkeys(subscribed_events))
        filters = check_filters(filters, self._versions, authority.api_version)
        # Register the function first: an immediate event finds it.
        self._handlers.register(authority.partition, url, handle)
        endpoint = self._find(authority, url)
        if endpoint is None:
            with suppress(WebhookUrlInUse):  # another process creates it too
                creating = authority.trace_as("webhooks.create", ())
                return self._endpoints.create_for_handler(creating, url, wanted, filters)
            endpoint = self._find(authority, url)
            if endpoint is None:
                raise WebhookUrlInUse()
        if (endpoint.subscribed_events, endpoint.filters) == (wanted, filters):
            return endpoint
        changes = EndpointChanges(subscribed_events=wanted, filters=filters)
        changing = authority.trace_as("webhooks.change", (endpoint.id,))
        return self._endpoints.update(changing, endpoint.id, changes)

    def _find(self, authority: Authority, url: str) -> Endpoint | None:
        """The endpoint, even if a partner has disabled it: we must not undo that."""
        found = (
            endpoint
            for status in ("active", "disabled")
            for endpoint in self._iterate(authority.partition, status)
            if endpoint.url == url
        )
        return next(found, None)

    def _iterate(self, partition: str, status: str) -> Iterator[Endpoint]:
        after: Position | None = None
        while True:
            page: Page[Endpoint] = self._storage.read(
                partition,
                lambda snapshot, after=after: snapshot.find(  # type: ignore[misc]
                    Endpoint, "by_status", (status,), after=after, limit=100, skip_damaged=True
                ),
            )
            yield from page.records
            if page.next is None:
                return
            after = page.next
