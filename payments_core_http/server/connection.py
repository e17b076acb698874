"""A client's connection under waitress, with bounded time and memory regardless of the client.

Waitress keeps a connection open as long as a byte moves, reads all requests that arrive together
before it answers the first, and cannot end a connection whose client does not read. Here a
connection has one request at a time, and every wait for a client has a timeout. The thread that
made an answer sends it; the loop, the thread that attends (`thread_pool.py`), sends the rest.
"""

from __future__ import annotations

import contextlib
import math
import socket
import struct
import time
from contextvars import ContextVar
from typing import Any, Protocol

from waitress import wasyncore
from waitress.channel import HTTPChannel

from payments_core_http.server.framing import Fault, IncomingRequest
from payments_core_http.server.hosting import HostedApp
from payments_core_http.server.limits import ServerLimits
from payments_core_http.server.responses import RefusalTask, ResponseTask
from payments_core_http.server.selector import EVENT_READ, EVENT_WRITE, SocketSelector

_RESET_ON_CLOSE = struct.pack("ii", 1, 0)


class Host(Protocol):
    """What a connection needs of its server."""

    hosted: HostedApp
    is_stopping: bool
    poll: SocketSelector
    unsent: set[Connection]

    def add_task(self, task: Connection) -> None:
        """Queue the connection's request to be answered."""

    def log_rate_limited(self, what: str) -> None:
        """Log a warning, unless one was logged recently."""


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
        server: Host = self.server
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
        ANSWERING_CONNECTION.set(self)
        self.waits_since = math.inf
        try:
            super().service()
        finally:
            self.waits_since = time.monotonic()
            ANSWERING_CONNECTION.set(None)

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
        server: Host = self.server
        return server.hosted.callers.name(self.requests[0].headers, self.addr[0])

    @property
    def may_write(self) -> bool:
        """Whether the request may change something, by its method."""
        request = self.requests[0]
        return not request.error and request.command not in ("GET", "HEAD", "OPTIONS")

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
            late.error = Fault(408, "The request did not arrive in time")
            self.requests.append(late)
            self.server.add_task(self)


ANSWERING_CONNECTION: ContextVar[Connection | None] = ContextVar("answered", default=None)
"""The connection whose request the thread answers: waitress does not pass it to the waker."""
