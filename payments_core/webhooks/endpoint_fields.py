"""What callers say of an endpoint."""

from __future__ import annotations

from typing import Annotated

import attrs
from msgspec import UNSET, Meta, UnsetType

from payments_core.brief_repr import brief_repr
from payments_core.engine.events import EventName
from payments_core.webhooks.envelopes import BodyFormat
from payments_core.webhooks.filters import EventFilters
from payments_core.webhooks.record import EndpointStatus

EndpointDescription = Annotated[str, Meta(max_length=512)]
EventNames = Annotated[tuple[EventName, ...], Meta(max_length=100)]


@attrs.frozen
class EndpointChanges:
    """Changes of an endpoint: `msgspec.UNSET` leaves a field as it is; no events means all.

    New filters are for the events from then on: deliveries that were made stay.

    >>> endpoint = shop.on_event("books", print)
    >>> changes = EndpointChanges(subscribed_events=("payment.succeeded",))
    >>> shop.webhooks.change(endpoint.id, changes).subscribed_events
    ('payment.succeeded',)
    """

    __repr__ = brief_repr

    description: EndpointDescription | UnsetType | None = UNSET
    subscribed_events: EventNames | UnsetType = UNSET
    status: EndpointStatus | UnsetType = UNSET
    filters: EventFilters | UnsetType = UNSET
    body_format: BodyFormat | UnsetType = UNSET
