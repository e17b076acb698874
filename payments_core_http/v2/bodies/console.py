"""The webhook console."""

from __future__ import annotations

from typing import Annotated, Literal

import attrs
from msgspec import Meta

from payments_core.errors import FieldError
from payments_core.events import BY_NAME
from payments_core_http.v2.queries import Moment, moment

EventNames = Annotated[
    tuple[Annotated[str, Meta(min_length=1, max_length=64)], ...], Meta(max_length=100)
]


def unknown_events(names: tuple[str, ...] | None) -> list[FieldError]:
    """The names that are not in the catalog, by their places."""
    return [
        FieldError(f"subscribedEvents[{place}]", "is no event of the catalog")
        for place, name in enumerate(names or ())
        if name not in BY_NAME
    ]


@attrs.frozen(kw_only=True)
class CreateWebhook:
    """An endpoint; without `subscribedEvents` it receives every event."""

    url: Annotated[str, Meta(min_length=1, max_length=2_048)]
    description: Annotated[str, Meta(max_length=512)] | None = None
    subscribedEvents: EventNames = ()

    def faults(self) -> list[FieldError]:
        """Events that there are not."""
        return unknown_events(self.subscribedEvents)


@attrs.frozen(kw_only=True)
class RotateWebhookSecret:
    """How long the secret before goes on signing beside the new one: up to seven days."""

    overlapSeconds: Annotated[int, Meta(ge=0, le=604_800)] = 0


@attrs.frozen(kw_only=True)
class ChangeWebhook:
    """What is absent stays."""

    description: Annotated[str, Meta(max_length=512)] | None = None
    subscribedEvents: EventNames | None = None
    status: Literal["active", "disabled", "archived"] | None = None

    def faults(self) -> list[FieldError]:
        """Events that there are not."""
        return unknown_events(self.subscribedEvents)


@attrs.frozen(kw_only=True)
class ResendEvent:
    """Where to; without `webhookId` to every active endpoint that is subscribed."""

    webhookId: Annotated[str, Meta(min_length=1, max_length=64)] | None = None


@attrs.frozen(kw_only=True)
class RecoverWebhook:
    """From when on; an ISO 8601 time with a zone, at most 30 days ago."""

    since: Moment

    def faults(self) -> list[FieldError]:
        """A time that is none."""
        if moment(self.since) is None:
            return [FieldError("since", "must be an ISO 8601 time with a zone")]
        return []
