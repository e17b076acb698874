"""Which sockets the loop waits for, and what it calls when one is ready.

Waitress asks every connection before every wait whether it wants to read or write; with a thousand
of them that is most of a server's work. Here a connection is asked only after it has changed. A
socket stays registered while its request is answered: a client that waits for its answer sends
nothing, so that nothing has to be changed, and the thread that answered wakes nobody.
"""

from __future__ import annotations

import contextlib
import selectors
from collections import deque
from collections.abc import Callable
from selectors import EVENT_READ, EVENT_WRITE
from typing import Any, Protocol

__all__ = ["SocketSelector", "Waker", "SelectorSocket", "EVENT_READ", "EVENT_WRITE"]


class SelectorSocket(Protocol):
    """A socket in the loop. Only the thread that attends calls its methods."""

    interest: int
    """The events that it is registered for; only `SocketSelector` changes them."""

    def fileno(self) -> int | None:
        """Its descriptor; None once it is closed, after it called `unregister`."""

    def wanted_events(self) -> int:
        """EVENT_READ, EVENT_WRITE, both, or 0."""

    def on_ready(self, events: int) -> None:
        """Read or write. Events that it does not want at present are not included."""

    def on_register_failed(self, error: OSError) -> None:
        """The system could not register it: the user's limit is reached, or memory is exhausted."""


class SocketSelector:
    """One loop's sockets."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._changed: deque[SelectorSocket] = deque()
        self._is_rung = False

    def wait(self, timeout_s: float) -> None:
        """Wait until a socket is ready, and handle its events."""
        for key, events in self._selector.select(timeout_s):
            one: SelectorSocket = key.data
            # Another socket of this turn may have closed it, and its descriptor have a new owner.
            if one.fileno() == key.fd:
                self._dispatch(one, events)

    def _dispatch(self, one: SelectorSocket, events: int) -> None:
        wanted = events & one.wanted_events()
        if wanted:
            one.on_ready(wanted)
        self.update(one)
        if not wanted and one.interest and one.fileno() is not None:
            self._register(one, 0)
            # A thread that answered since may have seen the registration, and not woken the loop.
            self.update(one)

    def update(self, one: SelectorSocket) -> None:
        """Register it for the events that it wants now."""
        wanted = one.wanted_events()
        if one.fileno() is None or wanted == one.interest:
            return
        if wanted or one.interest & EVENT_WRITE:
            self._register(one, wanted)

    def update_changed(self) -> None:
        """The same for all sockets that threads have named."""
        self._is_rung = False  # before, or a socket that is named meanwhile would be forgotten
        while self._changed:
            self.update(self._changed.popleft())

    def _register(self, one: SelectorSocket, wanted: int) -> None:
        number = one.fileno()
        if number is None:
            return
        before, one.interest = one.interest, wanted
        try:
            if not wanted:
                self._selector.unregister(number)
            elif before:
                self._selector.modify(number, wanted, one)
            else:
                self._selector.register(number, wanted, one)
        except OSError as error:
            one.interest = before
            one.on_register_failed(error)

    def request_update(self, one: SelectorSocket | None, wake: Callable[[], None]) -> None:
        """Have the loop end its wait and update a socket next; from any thread."""
        if one is not None:
            self._changed.append(one)
        if not self._is_rung:
            self._is_rung = True
            wake()

    def unregister(self, one: SelectorSocket) -> None:
        """Stop waiting for a socket, which closes."""
        number = one.fileno()
        if one.interest and number is not None:
            one.interest = 0
            with contextlib.suppress(KeyError, ValueError):
                self._selector.unregister(number)

    def close(self) -> None:
        """Stop waiting, and let a late thread wake nobody: the pipe closes too."""
        self._is_rung = True
        self._selector.close()


class Waker:
    """Waitress's pipe, by which threads wake the loop."""

    interest = 0

    def __init__(self, trigger: Any) -> None:
        self._trigger = trigger

    def fileno(self) -> int | None:
        """The end that is read."""
        number: int | None = self._trigger._fileno
        return number

    def wanted_events(self) -> int:
        """It is always read."""
        return EVENT_READ

    def on_ready(self, events: int) -> None:
        """Empty the pipe; the loop knows which sockets changed."""
        self._trigger.handle_read()

    def on_register_failed(self, error: OSError) -> None:
        """Raise the error: the loop cannot run without it."""
        raise error
