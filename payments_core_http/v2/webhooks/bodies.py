"""The webhook console."""

from __future__ import annotations

from typing import Literal

import attrs
from msgspec import UNSET, UnsetType

from payments_core.engine.events import EventName
from payments_core.validation.fields import AccountId, Id
from payments_core.webhooks.lifecycle import EndpointDescription, EventNames
from payments_core.webhooks.operations import OverlapInSeconds, WebhookUrl
from payments_core_http.v2.types import Moment
from payments_core_http.wire.query import PageQuery


@attrs.frozen(kw_only=True)
class CreateWebhook:
    """An endpoint; without `subscribedEvents` it receives every event."""

    url: WebhookUrl
    description: EndpointDescription | None = None
    subscribedEvents: EventNames = ()


@attrs.frozen(kw_only=True)
class RotateWebhookSecret:
    """How long the secret before goes on signing beside the new one: up to seven days."""

    overlapSeconds: OverlapInSeconds = 0


@attrs.frozen(kw_only=True)
class ChangeWebhook:
    """What is absent stays; a description of null is taken away."""

    description: EndpointDescription | UnsetType | None = UNSET
    subscribedEvents: EventNames | UnsetType = UNSET
    status: Literal["active", "disabled", "archived"] | UnsetType = UNSET


@attrs.frozen(kw_only=True)
class ResendEvent:
    """Where to; without `webhookId` to every active endpoint that is subscribed."""

    webhookId: Id | None = None


@attrs.frozen(kw_only=True)
class RecoverWebhook:
    """From when on; an ISO 8601 time with a zone, at most 30 days ago."""

    since: Moment


@attrs.frozen(kw_only=True)
class ListEvents(PageQuery):
    """Events that fit every filter given; the times are ISO 8601 with a zone."""

    name: EventName | None = None
    accountId: AccountId | None = None
    createdAfter: Moment | None = None
    createdBefore: Moment | None = None
