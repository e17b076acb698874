"""Which sockets the loop waits for, and what it calls when one is ready.

To ask every connection before every wait whether it wants to read or write is most of a server's
work if there are a thousand of them. Here a connection is asked only after it has changed. A socket
stays registered while its request is answered: a client that waits for its answer sends nothing, so
that nothing has to be changed, and the thread that answered wakes nobody.
"""

from __future__ import annotations

import contextlib
import selectors
import socket
from collections import deque
from selectors import EVENT_READ, EVENT_WRITE
from typing import Protocol

__all__ = ["SocketSelector", "SelectorSocket", "EVENT_READ", "EVENT_WRITE"]


class SelectorSocket(Protocol):
    """A socket in the loop. Only the thread that attends calls its methods."""

    interest: int
    """The events that it is registered for; only `SocketSelector` changes them."""

    def fileno(self) -> int:
        """Its descriptor; -1 once it is closed, after it called `unregister`."""

    def wanted_events(self) -> int:
        """Do what needs no wait; returns EVENT_READ, EVENT_WRITE, or 0."""

    def on_ready(self, events: int) -> None:
        """Read or write. Events that it does not want at present are not included."""

    def on_error(self, error: Exception) -> None:
        """Another method failed, or the system cannot register it: memory is exhausted, ..."""


class SocketSelector:
    """One loop's sockets, and a pair of its own by which other threads wake it."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._changed: deque[SelectorSocket] = deque()
        self._is_woken = False
        self._wakes, self._waker = socket.socketpair()
        for end in (self._wakes, self._waker):
            end.setblocking(False)
        self._selector.register(self._wakes, EVENT_READ)

    def wait(self, timeout_s: float) -> None:
        """Wait until a socket is ready, and handle its events."""
        for key, events in self._selector.select(timeout_s):
            one: SelectorSocket | None = key.data
            if one is None:
                self._wakes.recv(64)
            # Another socket of this turn may have closed it, and its descriptor have a new owner.
            elif one.fileno() == key.fd:
                self._dispatch(one, events)

    def _dispatch(self, one: SelectorSocket, events: int) -> None:
        try:
            wanted = events & one.wanted_events()
            if wanted:
                one.on_ready(wanted)
            self._register_wanted(one)
            if not wanted and one.interest and one.fileno() >= 0:
                self._register(one, 0)
                # A thread that answered since may have seen the registration, and not woken the
                # loop.
                self._register_wanted(one)
        except Exception as error:
            one.on_error(error)

    def update(self, one: SelectorSocket) -> None:
        """Register it for the events that it wants now."""
        try:
            self._register_wanted(one)
        except Exception as error:
            one.on_error(error)

    def update_changed(self) -> None:
        """The same for all sockets that threads have named."""
        self._is_woken = False  # before, or a socket that is named meanwhile would be forgotten
        while self._changed:
            self.update(self._changed.popleft())

    def _register_wanted(self, one: SelectorSocket) -> None:
        wanted = one.wanted_events()
        is_changed = wanted != one.interest and one.fileno() >= 0
        if is_changed and (wanted or one.interest & EVENT_WRITE):
            self._register(one, wanted)

    def _register(self, one: SelectorSocket, wanted: int) -> None:
        before, one.interest = one.interest, wanted
        try:
            if not wanted:
                self._selector.unregister(one.fileno())
            elif before:
                self._selector.modify(one.fileno(), wanted, one)
            else:
                self._selector.register(one.fileno(), wanted, one)
        except OSError:
            one.interest = before
            raise

    def request_update(self, one: SelectorSocket) -> None:
        """Have the loop end its wait and update a socket next; from any thread."""
        self._changed.append(one)
        self.wake()

    def wake(self) -> None:
        """Have the loop end its wait; from any thread or signal handler."""
        if not self._is_woken:
            self._is_woken = True
            with contextlib.suppress(OSError):  # it is closed
                self._waker.send(b"!")

    def unregister(self, one: SelectorSocket) -> None:
        """Stop waiting for a socket, which closes."""
        if one.interest:
            one.interest = 0
            with contextlib.suppress(KeyError, ValueError):
                self._selector.unregister(one.fileno())

    def close(self) -> None:
        """Stop waiting for any socket; a late thread wakes nobody."""
        for one in (self._selector, self._wakes, self._waker):
            one.close()
