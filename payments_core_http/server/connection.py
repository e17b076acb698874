"""Connections under waitress, each with bounded time and memory regardless of its client.

Waitress keeps a connection open as long as a byte moves, reads all requests that arrive together
before it answers the first, cannot end a connection whose client does not read, and accepts nobody
once it is full. Here a connection has one request at a time, every wait for a client has a timeout,
and if there are too many connections, those that have waited longest are closed. The thread that
made an answer sends it; the loop, the thread that attends (`thread_pool.py`), sends the rest.
"""

from __future__ import annotations

import contextlib
import logging
import math
import socket
import struct
import sys
import time
from contextvars import ContextVar
from typing import Any

from waitress import wasyncore
from waitress.channel import HTTPChannel
from waitress.server import TcpWSGIServer

from payments_core.engine.identifiers import Identifiers
from payments_core.errors import PaymentsError
from payments_core_http.errors import (
    HeadersTooLarge,
    MalformedRequest,
    PayloadTooLarge,
    RequestTimedOut,
    UnsupportedTransferCoding,
)
from payments_core_http.server.framing import IncomingRequest
from payments_core_http.server.limits import (
    ServerLimits,
    pick_longest_waiting,
    pick_slowest_readers,
)
from payments_core_http.server.responses import RefusalTask, RequestTimeout, ResponseTask
from payments_core_http.server.selector import EVENT_READ, EVENT_WRITE, SocketSelector, Waker
from payments_core_http.server.turns import Callers
from payments_core_http.wire.request_body import MAX_BODY_BYTES

MAX_HEADER_BYTES = 16 * 1024

_TIMEOUT_CHECK_INTERVAL_S = 0.5
"""How often connections are checked for timeouts."""
_MAX_ACCEPTS = 64
"""How many new connections are accepted at a time; the bound is exceeded by no more."""
_ACCEPT_PAUSE_S = 0.5
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)
_WARNING_INTERVAL_S = 60.0

_log = logging.getLogger("payments_core_http")


class Connection(HTTPChannel):  # type: ignore[misc]
    """One client's connection. Everything runs in the thread that attends, except `service`."""

    task_class = ResponseTask
    error_task_class = RefusalTask

    connected: bool
    close_when_flushed: bool
    request: Any

    def __init__(self, *args: Any, **more: Any) -> None:
        self.waits_since: float = time.monotonic()
        """When the wait for the client began; slow bytes do not postpone it. Never while a request
        is being answered: the client may have its answer before the thread records that."""
        self._began: float | None = None
        """When the first byte of an incomplete request arrived."""
        self._unread = b""
        """Pipelined requests: they are read after the previous one is answered."""
        self._ends = self._lingers = False
        self.interest = 0
        super().__init__(*args, **more)

    def fileno(self) -> int | None:
        """The descriptor, until it is closed."""
        return self._fileno  # type: ignore[no-any-return]

    def wanted_events(self) -> int:
        """The events to wait for."""
        server: ConnectionServer = self.server
        wanted = EVENT_READ if self.readable() else 0
        if self.writable():
            wanted |= EVENT_WRITE
        if self.total_outbufs_len:
            server.unsent.add(self)
        else:
            server.unsent.discard(self)
        return wanted

    def on_ready(self, events: int) -> None:
        """Receive and send. An error is logged, and closes only this connection."""
        if events & EVENT_READ:
            wasyncore.read(self)
        if events & EVENT_WRITE and self.connected:
            wasyncore.write(self)

    def on_register_failed(self, error: OSError) -> None:
        """Close: the operating system cannot watch the connection."""
        self.server.log_rate_limited(f"a connection could not be opened ({error})")
        self.abort()

    def del_channel(self, map: Any = None) -> None:
        """Close: stop watching and counting the connection."""
        self.server.poll.unregister(self)
        self.server.unsent.discard(self)
        super().del_channel(map)

    def parser_class(self, settings: Any) -> IncomingRequest:
        """A new request."""
        return IncomingRequest(settings, self._keep_unread)

    def _keep_unread(self, unread: bytes) -> None:
        self._unread = unread

    def readable(self) -> bool:
        """Whether more may be received; first processes what was received before."""
        if self._unread and not self.requests and not self.total_outbufs_len:
            self._resume_reading()
        if not self.connected or self._ends:
            return self.connected and self._lingers
        return not self._unread and bool(super().readable())

    def _resume_reading(self) -> None:
        if self.connected and not (self._ends or self.close_when_flushed or self.will_close):
            unread, self._unread = self._unread, b""
            self.received(unread)

    def received(self, data: bytes) -> bool:
        """Read the part of the next request that has arrived, and queue it once it is complete."""
        taken = bool(super().received(data))
        now = time.monotonic()
        if self.request is None:
            self._began, self.waits_since = None, now
        elif self._began is None:
            self._began = now
        return taken

    def handle_read(self) -> None:
        """Receive bytes, or drop them after the last answer."""
        if not self._lingers:
            super().handle_read()
            return
        try:
            self.recv(self.adj.recv_bytes)  # which closes if the client has closed
        except OSError:
            self.handle_close()

    def writable(self) -> bool:
        """Whether to send, or to end; during an answer only what its thread may wait for."""
        if not self.connected or (self.requests and self.total_outbufs_len < self.adj.send_bytes):
            return self.connected and bool(self.will_close)
        return bool(super().writable())

    def handle_write(self) -> None:
        """Send; after the last answer shut down writing, and wait for the client to close.

        An immediate close would reset the connection while its client still sends, and the client
        would lose the answer.
        """
        if self.close_when_flushed:
            self._ends, self.close_when_flushed = True, False
        super().handle_write()
        if self._ends and self.connected and not self._lingers and not self.total_outbufs_len:
            try:
                self.socket.shutdown(socket.SHUT_WR)
            except OSError:
                self.handle_close()
            else:
                self._lingers, self.waits_since = True, time.monotonic()

    def service(self) -> None:
        """Answer the request; in a thread of the pool."""
        _ANSWERING_CONNECTION.set(self)
        self.waits_since = math.inf
        try:
            super().service()
        finally:
            self.waits_since = time.monotonic()
            _ANSWERING_CONNECTION.set(None)

    def _flush_some(self, do_close: bool = True) -> bool:
        # The thread that answered and the loop may both do it.
        with self.outbuf_lock:
            return bool(super()._flush_some(do_close))

    def flush_or_needs_loop(self) -> bool:
        """Send what the client accepts at once; returns whether the loop has more to do.

        In the thread that answers: when the answer is made, or a part of it that is too large. The
        request ends before the client has its answer, or its next request would come too early.
        """
        if self.total_outbufs_len and not self.requests:
            self._flush_exception(self._flush_some, do_close=False)
        is_waited_for = self.interest == EVENT_READ and not self._unread
        is_ending = self.close_when_flushed or self.will_close
        return bool(is_ending or self.total_outbufs_len or not is_waited_for)

    @property
    def path(self) -> str | None:
        """The path of the request to answer; None if the request is not valid."""
        request = self.requests[0]
        return None if request.error else request.path

    @property
    def caller(self) -> str:
        """The caller of the request to answer."""
        server: ConnectionServer = self.server
        return server.callers.name(self.requests[0].headers, self.addr[0])

    @property
    def is_clients_turn(self) -> bool:
        """Whether the server waits for the client: to send a request, or to read a response."""
        is_answered = self.requests or self.waits_since == math.inf
        return not is_answered and not (self._unread and not self.total_outbufs_len)

    def enforce_timeouts(self, now: float, limits: ServerLimits) -> None:
        """Close the connection if the client exceeded a timeout."""
        if self.requests or not self.connected:
            return
        if self._began is not None:
            if now - self._began > limits.request_s:
                self._refuse_timed_out()
            return
        allowed_s = limits.choose_wait_s(is_ending=self._lingers, unsent=self.total_outbufs_len)
        if now - self.waits_since > allowed_s:
            self.abort()

    def abort(self) -> None:
        """End the connection now, and drop what the client has not read, the kernel's part too.

        Waitress's `will_close` waits until something can be sent, which may be never.
        """
        if self.total_outbufs_len:
            with contextlib.suppress(OSError):
                self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
        self.handle_close()

    def _refuse_timed_out(self) -> None:
        with self.requests_lock:
            late, self.request, self._began = self.request, None, None
            late.error = RequestTimeout("The request did not arrive in time")
            self.requests.append(late)
            self.server.add_task(self)


_ANSWERING_CONNECTION: ContextVar[Connection | None] = ContextVar("answered", default=None)
"""The connection whose request the thread answers: waitress does not pass it to the waker."""


class ConnectionServer(TcpWSGIServer):  # type: ignore[misc]
    """Accepts connections, and closes those that time out or whose slot is needed."""

    channel_class = Connection

    def __init__(
        self,
        *args: Any,
        identifiers: Identifiers,
        api_version: str,
        limits: ServerLimits,
        **more: Any,
    ) -> None:
        self.identifiers = identifiers
        self.api_version = api_version
        self.refusals: dict[int, PaymentsError] = {
            400: MalformedRequest(),
            408: RequestTimedOut(),
            413: PayloadTooLarge(MAX_BODY_BYTES),
            431: HeadersTooLarge(MAX_HEADER_BYTES),
            501: UnsupportedTransferCoding(),
        }
        self.limits, self.callers = limits, Callers()
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
        self.poll.wait(timeout_s)

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
        for _ in range(self.adj.backlog // _MAX_ACCEPTS + 1):  # as many as its queue may hold
            if not self.handle_accept():
                break
            self.run_once(0)
        wasyncore.dispatcher.close(self)

    def pull_trigger(self) -> None:
        """Wake the loop; a thread that has answered does so only if there is more to do."""
        answered = _ANSWERING_CONNECTION.get()
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
        return self.accepting and now >= self._accepts_at and self._has_room()

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
        for taken in range(_MAX_ACCEPTS):
            try:
                client, address = self.socket.accept()
            except (BlockingIOError, ConnectionError):
                return taken > 0
            except OSError as error:  # out of descriptors, most likely
                self.log_rate_limited(
                    f"a connection could not be accepted ({error}): "
                    "the one that has been idle longest is closed"
                )
                if not self._evict_connections(_MAX_ACCEPTS):
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
