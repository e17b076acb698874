"""The webhook console."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

from payments_core.engine.events import EventName
from payments_core.errors import FieldError
from payments_core.validation.fields import AccountId, Id
from payments_core.webhooks.endpoint_fields import EndpointDescription, EventNames
from payments_core.webhooks.envelopes import BodyFormat
from payments_core.webhooks.filters import MAX_RULES, FilterOperator, FilterText, FilterTexts
from payments_core.webhooks.operations import OverlapInSeconds, WebhookUrl
from payments_core_http.v2.types import Moment
from payments_core_http.wire.classes import frozen_body
from payments_core_http.wire.query import PageQuery


@frozen_body
class EventFilterInput:
    """A rule over a field of an event: `in` takes `values`, `exists` and `absent` nothing, and the
    other operators a `value`. An absent field, or null, satisfies `absent` alone.
    """

    field: FilterText
    """The path of a field of the event: `name`, `createdAt`, `payload.` with the name of a field of
    the catalog, or `payload.metadata.` with a key of your own."""
    op: FilterOperator
    """How the field is compared; sizes are for numbers, amounts and times."""
    value: FilterText | None = None
    """What it is compared with; amounts are in the smallest unit."""
    values: FilterTexts = ()
    """The values of `in`."""


EventFilters = Annotated[tuple[EventFilterInput, ...], Meta(max_length=MAX_RULES)]


@frozen_body
class CreateWebhook:
    """An endpoint; without `subscribedEvents` it receives every event.

    Null is refused, since it may be a value that was lost.
    """

    url: WebhookUrl
    description: EndpointDescription | None = None
    """Your own text about it."""
    subscribedEvents: EventNames | UnsetType = UNSET
    filters: EventFilters | UnsetType = UNSET
    bodyFormat: BodyFormat | UnsetType = UNSET


@frozen_body
class RotateWebhookSecret:
    """How long the previous secret still signs together with the new one: up to seven days."""

    overlapSeconds: OverlapInSeconds = 0
    """For how many seconds the previous secret also signs deliveries."""


@frozen_body
class ChangeWebhook:
    """An absent field stays as it is; a null description removes it."""

    description: EndpointDescription | UnsetType | None = UNSET
    """Your own text about it; null clears it."""
    subscribedEvents: EventNames | UnsetType = UNSET
    filters: EventFilters | UnsetType = UNSET
    bodyFormat: BodyFormat | UnsetType = UNSET
    status: Literal["active", "disabled", "archived"] | UnsetType = UNSET
    """The new state."""


@frozen_body
class ResendEvent:
    """The endpoint to send to; without `webhookId`, every active endpoint that is subscribed.

    Null is refused, since it may be a value that was lost.
    """

    webhookId: Id | UnsetType = UNSET


@frozen_body
class RecoverWebhook:
    """The time from which to recover; an ISO 8601 time with a zone, at most 30 days ago."""

    since: Moment


@frozen_body
class ListEvents(PageQuery):
    """The events that match all filters; the times are ISO 8601 with a zone."""

    name: EventName | None = None
    """Only events with this name."""
    accountId: AccountId | None = None
    createdAfter: Moment | None = None
    """Only those created at this time or later."""
    createdBefore: Moment | None = None
    """Only those created before this time. What was created in the minute before the request may
    still be missing."""
    after: Annotated[str, Meta(min_length=1, max_length=2_000)] | None = None
    """To read each event once, oldest first: `start` for all events that are kept, `end` for those
    from now on, then the `nextCursor` of the last answer, which is never null here. It is for
    `name`, `accountId` and `limit` alone."""

    def faults(self) -> list[FieldError]:
        """`after` together with `cursor`, `createdAfter` or `createdBefore`."""
        others = ("cursor", "createdAfter", "createdBefore")
        given = [name for name in others if getattr(self, name) is not None]
        if self.after is None:
            return []
        return [FieldError(name, "cannot be given together with after") for name in given]
