"""Turns the verified envelope of a webhook into a struct for each event."""

from __future__ import annotations

import msgspec

from payments_core.webhooks.received import ReceivedEvent
from payments_core_http.client.events import BY_NAME, Event, UnknownEvent


class EventMalformed(ValueError):
    """An event whose payload this release does not understand.

    The delivery is authentic, so do not refuse it: respond with a 500, and the event is retried
    until the receiver understands it.
    """


def parse_event(received: ReceivedEvent) -> Event:
    """The event as the class of its name; one that this release does not know is an UnknownEvent.

    `received` is what `verify_webhook` returns, or what a handler of `on_event` gets. Raises
    EventMalformed.
    """
    kind: type[Event] = BY_NAME.get(received.name, UnknownEvent)
    try:
        return msgspec.convert(msgspec.to_builtins(received), kind)
    except msgspec.ValidationError as error:
        raise EventMalformed(f"{received.name} {received.id}: {error}") from None
