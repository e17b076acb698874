"""Handlers of events in this process: an endpoint that is a function of who embeds the library.

Such an endpoint is stored as any other, with `handler:` and its name for a URL; so events reach
it by the same deliveries, schedule and bounds (decision 0017). Only the last step differs: the
attempt calls a function instead of a server.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future

from payments_core.webhooks.receiver import ReceivedEvent, read_event

Handle = Callable[[ReceivedEvent], object]
"""Is given an event, perhaps more than once; what it raises has the event come again."""

SCHEME = "handler:"
MAX_OVERDUE = 4
"""So many attempts of a handler may go on beyond their time; then none begins before one ends."""

_log = logging.getLogger(__name__)


def handler_url(name: str) -> str:
    """The URL of the endpoint of a handler. Webhooks over HTTP have other schemes."""
    return SCHEME + name


class HandlersOverdue(Exception):
    """Too many earlier attempts have not come back: no attempt was made."""


class EventHandlers:
    """The handlers of this process, by environment and URL."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._handlers: dict[tuple[str, str], Handle] = {}
        self._overdue: Counter[tuple[str, str]] = Counter()

    def register(self, partition: str, url: str, handle: Handle) -> None:
        """Let the function have the events of that endpoint; it takes an earlier one's place."""
        with self._lock:
            self._handlers[partition, url] = handle

    def call(self, partition: str, url: str, body: str, within_s: float) -> str | None:
        """Have the event of a delivery's body handled; why that failed, or None.

        It runs in a thread of its own, which goes on alone when the time is over, as nothing ends
        a thread from outside. Raises HandlersOverdue.
        """
        key = (partition, url)
        with self._lock:
            handle = self._handlers.get(key)
            if self._overdue[key] >= MAX_OVERDUE:
                raise HandlersOverdue()
        if handle is None:
            return "No handler of this name is registered where the worker runs."
        event = read_event(body.encode())
        outcome: Future[None] = Future()
        threading.Thread(target=_run, args=(handle, event, outcome), name=url, daemon=True).start()
        try:
            error = outcome.exception(within_s)
        except TimeoutError:
            self._count_overdue(key, outcome)
            return f"The handler did not return within {within_s:g} s."
        if error is None:
            return None
        _log.error("%s failed at %s of %s", url, event.name, event.id, exc_info=error)
        return f"The handler raised {type(error).__name__}."

    def _count_overdue(self, key: tuple[str, str], outcome: Future[None]) -> None:
        with self._lock:
            self._overdue[key] += 1
        outcome.add_done_callback(lambda _: self._forget_overdue(key))

    def _forget_overdue(self, key: tuple[str, str]) -> None:
        with self._lock:
            self._overdue[key] -= 1


def _run(handle: Handle, event: ReceivedEvent, outcome: Future[None]) -> None:
    try:
        handle(event)
    except BaseException as error:  # the thread has nobody else to tell
        outcome.set_exception(error)
    else:
        outcome.set_result(None)
