"""The connections of one process: which are accepted, and which are closed to make room.

Waitress accepts nobody once it is full. Here, if there are too many connections, those that have
waited longest for their clients are closed.
"""

from __future__ import annotations

import contextlib
import logging
import socket
import sys
import time
from typing import Any

from waitress import wasyncore
from waitress.server import TcpWSGIServer

from payments_core_http.server.connection import ANSWERING_CONNECTION, Connection
from payments_core_http.server.hosting import HostedApp
from payments_core_http.server.limits import (
    ServerLimits,
    pick_longest_waiting,
    pick_slowest_readers,
)
from payments_core_http.server.selector import EVENT_READ, SocketSelector, Waker
from payments_core_http.server.shared_queue import MAX_ACCEPTS, QueueMember

_TIMEOUT_CHECK_INTERVAL_S = 0.5
"""How often connections are checked for timeouts."""
_ACCEPT_PAUSE_S = 0.5
_WARNING_INTERVAL_S = 60.0

_log = logging.getLogger(__name__)


class ConnectionServer(TcpWSGIServer):  # type: ignore[misc]
    """Accepts connections, and closes those that time out or whose slot is needed."""

    channel_class = Connection

    def __init__(
        self,
        *args: Any,
        hosted: HostedApp,
        limits: ServerLimits,
        queue: QueueMember,
        **more: Any,
    ) -> None:
        self.hosted = hosted
        self.limits = limits
        self._queue = queue
        self._looks_at = self._accepts_at = self._warns_at = 0.0
        self.is_stopping = False
        """Whether the server is stopping: every response then closes its connection."""
        self.poll: SocketSelector = SocketSelector()
        self.interest = 0
        self.unsent: set[Connection] = set()
        """Connections whose clients have not read all of their responses."""
        super().__init__(*args, **more)
        self.poll.update(Waker(self.trigger))

    def run_once(self, timeout_s: float) -> None:
        """Enforce the limits, wait for the next event, and handle it."""
        self.poll.update_changed()
        self.poll.update(self)
        yield_s = self._queue.yield_left_s(time.monotonic())
        self.poll.wait(min(timeout_s, yield_s) if yield_s > 0 else timeout_s)

    def fileno(self) -> int | None:
        """The listening socket's descriptor, until it is closed."""
        return self._fileno  # type: ignore[no-any-return]

    def wanted_events(self) -> int:
        """Accept, while there is room."""
        return EVENT_READ if self.readable() else 0

    def on_ready(self, events: int) -> None:
        """Accept new connections."""
        wasyncore.read(self)

    def on_register_failed(self, error: OSError) -> None:
        """The operating system cannot watch the socket: accepting is retried soon."""
        self._pause_accepting(error)

    def handle_error(self) -> None:
        """Keep listening after an error: waitress would close the socket permanently."""
        self._pause_accepting(sys.exception())

    def stop_accepting(self) -> None:
        """Accept the connections in the backlog, and no more after that.

        The kernel refuses a connection between the last `accept` and the end of the socket.
        """
        if self.socket is None:
            return
        self._queue.leave()
        for _ in range(self.adj.backlog // MAX_ACCEPTS + 1):  # as many as its queue may hold
            if not self.handle_accept():
                break
            self.run_once(0)
        wasyncore.dispatcher.close(self)

    def pull_trigger(self) -> None:
        """Wake the loop; a thread that has answered does so only if there is more to do."""
        answered = ANSWERING_CONNECTION.get()
        if answered is None or answered.flush_or_needs_loop():
            self.poll.request_update(answered, super().pull_trigger)

    def del_channel(self, map: Any = None) -> None:
        """Stop listening."""
        self.poll.unregister(self)
        super().del_channel(map)

    def readable(self) -> bool:
        """Whether to accept; runs in every turn of the loop, and enforces the limits first."""
        now = time.monotonic()
        if now >= self._looks_at:
            self._looks_at = now + _TIMEOUT_CHECK_INTERVAL_S
            for one in list(self.active_channels.values()):
                one.enforce_timeouts(now, self.limits)
        self._limit_unsent()
        excess = len(self.active_channels) - self.limits.connections
        if excess > 0:
            most = self.limits.connections
            self.log_rate_limited(
                f"more than {most} connections: the ones that have been idle longest are closed"
            )
            self._evict_connections(excess)
        may_accept = self.is_stopping or self._queue.may_accept(len(self.active_channels), now)
        return self.accepting and may_accept and now >= self._accepts_at and self._has_room()

    def _limit_unsent(self) -> None:
        excess = sum(one.total_outbufs_len for one in self.unsent) - self.limits.unsent_bytes
        if excess <= 0:
            return
        for one in pick_slowest_readers(self.unsent):
            if excess > 0:
                excess -= one.total_outbufs_len
                one.abort()

    def _evict_connections(self, count: int) -> int:
        """Close connections that wait for their clients; return how many were closed."""
        ended = pick_longest_waiting(list(self.active_channels.values()))[:count]
        for one in ended:
            one.abort()
        return len(ended)

    def _has_room(self) -> bool:
        channels = self.active_channels
        return len(channels) < self.limits.connections or any(
            one.is_clients_turn for one in channels.values()
        )

    def log_rate_limited(self, what: str) -> None:
        """Log a warning, unless one was logged recently."""
        now = time.monotonic()
        if now >= self._warns_at:
            self._warns_at = now + _WARNING_INTERVAL_S
            _log.warning("%s", what)

    def _pause_accepting(self, why: BaseException | None) -> None:
        self.log_rate_limited(f"new connections are not accepted for now ({why!r})")
        self._accepts_at = time.monotonic() + _ACCEPT_PAUSE_S

    def handle_accept(self) -> bool:
        """Accept several connections at a time, above the limit too; the next turn makes room.

        Returns whether one was accepted. No existing connection is closed here: a new one would
        get its descriptor, with the pending events of the old one.
        """
        most = MAX_ACCEPTS
        if not self.is_stopping:
            most = self._queue.choose_accepts(len(self.active_channels), time.monotonic())
        for taken in range(most):
            try:
                client, address = self.socket.accept()
            except (BlockingIOError, ConnectionError):
                return taken > 0
            except OSError as error:  # out of descriptors, most likely
                self.log_rate_limited(
                    f"a connection could not be accepted ({error}): "
                    "the one that has been idle longest is closed"
                )
                if not self._evict_connections(MAX_ACCEPTS):
                    self._pause_accepting(error)
                return False
            self._admit(client, address)
        return True

    def _admit(self, client: socket.socket, address: Any) -> None:
        """Open a connection; an error closes only this one."""
        try:
            with contextlib.suppress(OSError):  # the client may have gone, which will show soon
                self.set_socket_options(client)
            self.poll.update(self.channel_class(self, client, address, self.adj, map=self._map))
        except Exception as error:
            self.log_rate_limited(f"a connection could not be opened ({error!r})")
            (self.active_channels.get(client.fileno()) or client).close()
