"""Handlers of events, as functions of the project: `on_event`, and how a process registers them.

A worker's process calls them, each call in its own thread. So Django's connections are closed after
each call; the next one opens its own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import attrs
from asgiref.sync import async_to_sync, iscoroutinefunction
from django.db import connections

from payments_core.plain_calls import require_plain_function

if TYPE_CHECKING:
    from payments_core import Resources
    from payments_core.webhooks import ReceivedEvent

Function = TypeVar("Function", bound=Callable[..., Any])

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")


@attrs.frozen
class Handler:
    """A function of the project, and the events that it is called with: all, if none are named."""

    name: str
    function: Callable[[ReceivedEvent], Any]
    subscribed_events: tuple[str, ...]


HANDLERS: dict[str, Handler] = {}
"""By their names. A module is imported again with every process, and in a test perhaps twice."""


def on_event(*events: str, name: str | None = None) -> Callable[[Function], Function]:
    """Call a function with these events of the project's app, or with all events if none are named.

    Write it in a module `payment_events` of an application in `INSTALLED_APPS`. The function gets a
    `ReceivedEvent`, at least once and in any order; if it raises, or does not return within
    `webhooks.attempt_s`, the event comes again. It may be an `async def`. `name` is that of the
    function unless given; the events are kept by it, also while no process runs, so keep it when
    you rename the function. Raises ValueError for a name that is taken or malformed, and TypeError
    for what is no function.

    >>> @on_event("payment.succeeded")
    ... def ship(event):
    ...     ...
    """
    if not all(isinstance(event, str) for event in events):
        raise TypeError('on_event takes names of events: write @on_event("payment.succeeded")')

    def register(function: Function) -> Function:
        if not iscoroutinefunction(function):
            require_plain_function(function, "the handler")
        own = str(name or getattr(function, "__name__", ""))
        if not _NAME.fullmatch(own):
            raise ValueError(
                f"{own!r} cannot name a handler: pass a name of 1 to 64 small letters, digits, - or"
                " _ to on_event"
            )
        earlier = HANDLERS.get(own)
        if earlier is not None and _place_of(earlier.function) != _place_of(function):
            raise ValueError(f"two handlers have the name {own!r}: pass another one to on_event")
        HANDLERS[own] = Handler(own, function, events)
        return function

    return register


def register_handlers(resources: Resources) -> tuple[str, ...]:
    """Register every handler of the project with the service, and return their names.

    Raises ValidationFailed for an unknown event, and WebhookLimitReached.
    """
    for handler in HANDLERS.values():
        resources.on_event(
            handler.name, _as_plain(handler.function), subscribed_events=handler.subscribed_events
        )
    return tuple(HANDLERS)


@contextmanager
def close_connections() -> Iterator[None]:
    """Close the connections of this thread, which ends after the call."""
    try:
        yield
    finally:
        connections.close_all()


within_call: Callable[[], AbstractContextManager[None]] = close_connections
"""What surrounds a call; a test shares its own connections with it instead."""


def _as_plain(function: Callable[[ReceivedEvent], Any]) -> Callable[[ReceivedEvent], Any]:
    call = async_to_sync(function) if iscoroutinefunction(function) else function

    @wraps(function)
    def handle(event: ReceivedEvent) -> Any:
        with within_call():
            return call(event)

    del handle.__wrapped__  # by it, a coroutine function would be found and refused
    return handle


def _place_of(function: Any) -> tuple[str, str]:
    return (getattr(function, "__module__", ""), getattr(function, "__qualname__", ""))
