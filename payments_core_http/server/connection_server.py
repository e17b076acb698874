"""The connections of one process: which are accepted, and which are closed to make room.

If there are too many connections, those that have waited longest for their clients are closed, so
that a new client is always accepted.
"""

from __future__ import annotations

import contextlib
import logging
import socket
import sys
import time
from typing import Any

from payments_core_http.server.connection import Connection
from payments_core_http.server.hosting import HostedApp
from payments_core_http.server.limits import (
    ServerLimits,
    pick_longest_waiting,
    pick_slowest_readers,
)
from payments_core_http.server.selector import EVENT_READ, SocketSelector
from payments_core_http.server.shared_queue import MAX_ACCEPTS, QueueMember
from payments_core_http.server.thread_pool import ThreadPool

BACKLOG = 1_024
"""How many connections may wait to be accepted, if the system allows it."""
_TIMEOUT_CHECK_INTERVAL_S = 0.5
"""How often connections are checked for timeouts."""
_ACCEPT_PAUSE_S = 0.5
_WARNING_INTERVAL_S = 60.0

_log = logging.getLogger(__name__)


class ConnectionServer:
    """Accepts connections, and closes those that time out or whose slot is needed."""

    def __init__(
        self, hosted: HostedApp, pool: ThreadPool, limits: ServerLimits, queue: QueueMember
    ) -> None:
        self.hosted = hosted
        self.limits = limits
        self.add_task = pool.add_task
        self._queue = queue
        self._socket = queue.listening
        self._socket.setblocking(False)
        host, port, *_ = self._socket.getsockname()
        self.environ: dict[str, Any] = {
            "SCRIPT_NAME": "",
            "SERVER_NAME": host,
            "SERVER_PORT": str(port),
            "wsgi.version": (1, 0),
            "wsgi.url_scheme": "http",
            "wsgi.errors": sys.stderr,
            "wsgi.multithread": True,
            "wsgi.multiprocess": True,
            "wsgi.run_once": False,
        }
        """What is the same in the WSGI environment of all requests."""
        self.is_stopping = False
        """Whether the server is stopping: every response then closes its connection."""
        self.poll = SocketSelector()
        self.interest = 0
        self.connections: set[Connection] = set()
        self.unsent: set[Connection] = set()
        """Connections whose clients have not read all of their responses."""
        self._looks_at = self._accepts_at = self._warns_at = 0.0

    def run_once(self, timeout_s: float) -> None:
        """Enforce the limits, wait for the next event, and handle it."""
        self.poll.update_changed()
        self._enforce_limits()
        self.poll.update(self)
        yield_s = self._queue.yield_left_s(time.monotonic())
        self.poll.wait(min(timeout_s, yield_s) if yield_s > 0 else timeout_s)

    def fileno(self) -> int:
        """The listening socket's descriptor; -1 once it is closed."""
        return self._socket.fileno()

    def wanted_events(self) -> int:
        """Accept, while there is room."""
        now = time.monotonic()
        may_accept = self.is_stopping or self._queue.may_accept(len(self.connections), now)
        is_open = self.fileno() >= 0 and now >= self._accepts_at
        return EVENT_READ if may_accept and is_open and self._has_room() else 0

    def on_ready(self, events: int) -> None:
        """Accept new connections."""
        self.accept()

    def on_error(self, error: Exception) -> None:
        """Accepting is retried soon."""
        self._pause_accepting(error)

    def stop_accepting(self) -> None:
        """Accept the connections in the backlog, and no more after that.

        The kernel refuses a connection between the last `accept` and the end of the socket.
        """
        if self.fileno() < 0:
            return
        self._queue.leave()
        for _ in range(BACKLOG // MAX_ACCEPTS + 1):  # as many as its queue may hold
            if not self.accept():
                break
            self.run_once(0)
        self.poll.unregister(self)
        self._socket.close()

    def close(self) -> None:
        """Close all connections, and wait for nothing more."""
        for one in list(self.connections):
            one.close()
        self.poll.close()

    def is_busy(self) -> bool:
        """Whether a request is being answered, or an answer has not been sent yet."""
        return any(one.is_answering or one.unsent_bytes for one in self.connections)

    def _enforce_limits(self) -> None:
        now = time.monotonic()
        if now >= self._looks_at:
            self._looks_at = now + _TIMEOUT_CHECK_INTERVAL_S
            for one in list(self.connections):
                one.enforce_timeouts(now, self.limits)
        self._limit_unsent()
        most = self.limits.connections
        excess = len(self.connections) - most
        if excess > 0:
            self.log_rate_limited(
                f"more than {most} connections: the ones that have been idle longest are closed"
            )
            self._evict_connections(excess)

    def _limit_unsent(self) -> None:
        excess = sum(one.unsent_bytes for one in self.unsent) - self.limits.unsent_bytes
        if excess <= 0:
            return
        for one in pick_slowest_readers(self.unsent):
            if excess > 0:
                excess -= one.unsent_bytes
                one.abort()

    def _evict_connections(self, count: int) -> int:
        """Close connections that wait for their clients; return how many were closed."""
        ended = pick_longest_waiting(list(self.connections))[:count]
        for one in ended:
            one.abort()
        return len(ended)

    def _has_room(self) -> bool:
        return len(self.connections) < self.limits.connections or any(
            one.is_clients_turn for one in self.connections
        )

    def log_rate_limited(self, what: str, error: Exception | None = None) -> None:
        """Log a warning, with an error's traceback, unless one was logged recently."""
        now = time.monotonic()
        if now >= self._warns_at:
            self._warns_at = now + _WARNING_INTERVAL_S
            _log.warning("%s", what, exc_info=error)

    def _pause_accepting(self, why: Exception) -> None:
        self.log_rate_limited(f"new connections are not accepted for now ({why!r})")
        self._accepts_at = time.monotonic() + _ACCEPT_PAUSE_S

    def accept(self) -> bool:
        """Accept several connections at a time, above the limit too; the next turn makes room.

        Returns whether one was accepted. No existing connection is closed here: a new one would
        get its descriptor, with the pending events of the old one.
        """
        most = MAX_ACCEPTS
        if not self.is_stopping:
            most = self._queue.choose_accepts(len(self.connections), time.monotonic())
        for taken in range(most):
            try:
                client, address = self._socket.accept()
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
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            connection = Connection(self, client, address)
        except Exception as error:
            self.log_rate_limited(f"a connection could not be opened ({error!r})")
            client.close()
            return
        self.connections.add(connection)
        self.poll.update(connection)
