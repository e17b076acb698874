"""Handlers of events in this process: an endpoint that is a function of the embedding program.

Such an endpoint is stored like any other, with `handler:` and its name as URL; so events reach
it by the same deliveries, schedule and limits (decision 0017). Only the last step differs: the
attempt calls a function instead of a server.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Future

from payments_core.plain_calls import require_plain_function, require_plain_result
from payments_core.webhooks.received import ReceivedEvent, read_event

Handle = Callable[[ReceivedEvent], object]
"""Receives an event, perhaps more than once; if it raises, the event comes again."""

SCHEME = "handler:"
MAX_OVERDUE = 4
"""The number of a handler's attempts that may run beyond their time before new ones are refused."""

_log = logging.getLogger(__name__)


def handler_url(name: str) -> str:
    """The URL of the endpoint of a handler. Webhooks over HTTP have other schemes."""
    return SCHEME + name


class HandlersOverdue(Exception):
    """Too many earlier attempts have not returned: no attempt was made."""


class EventHandlers:
    """The handlers of this process, by environment and URL."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._handlers: dict[tuple[str, str], Handle] = {}
        self._overdue: Counter[tuple[str, str]] = Counter()

    def register(self, partition: str, url: str, handle: Handle) -> None:
        """Register the function for that endpoint's events, replacing an earlier one.

        Raises TypeError for a coroutine function, which nothing would await.
        """
        require_plain_function(handle, "the handler")
        with self._lock:
            self._handlers[partition, url] = handle

    def call(self, partition: str, url: str, body: str, within_s: float) -> str | None:
        """Have the event of a delivery's body handled; the reason of a failure, or None.

        It runs in its own thread, which continues alone after the time-out, as nothing can end
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
        require_plain_result(handle(event), "the handler")
    except BaseException as error:  # nobody else sees the thread's error
        outcome.set_exception(error)
    else:
        outcome.set_result(None)
