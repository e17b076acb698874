"""A client's connection, with bounded time and memory regardless of the client.

A connection has one request at a time, and every wait for a client has a timeout. The thread that
made an answer sends it; the loop, the thread that attends (`thread_pool.py`), sends the rest.
"""

from __future__ import annotations

import contextlib
import math
import select
import socket
import struct
import threading
import time
from collections import deque
from itertools import islice
from typing import Any, Protocol

from payments_core_http.server.framing import Fault, IncomingRequest
from payments_core_http.server.hosting import HostedApp
from payments_core_http.server.limits import ServerLimits
from payments_core_http.server.responses import ClientGone, answer
from payments_core_http.server.selector import EVENT_READ, EVENT_WRITE, SocketSelector

SOCKET_BUFFER_BYTES = 128 * 1024
"""In the kernel, each way; a longer answer is sent while it is made."""
_RECEIVE_BYTES = 8 * 1024
"""Of one connection at a time: a slow reader must not hold up the others for long."""
_MAX_AHEAD_BYTES = 16 * 1024 * 1024
"""If a client has more than this to read, the thread that makes its answer waits for it."""
_MAX_PIECES = 1_000
"""The system sends no more than 1,024 at once."""
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)
_CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class Host(Protocol):
    """What a connection needs of its server."""

    hosted: HostedApp
    limits: ServerLimits
    environ: dict[str, Any]
    is_stopping: bool
    poll: SocketSelector
    connections: set[Connection]
    unsent: set[Connection]

    def add_task(self, task: Connection) -> None:
        """Queue the connection's request to be answered."""

    def log_rate_limited(self, what: str, error: Exception | None = None) -> None:
        """Log a warning, unless one was logged recently."""


class Connection:
    """One client's connection.

    It belongs to the thread that answers its request (`service`), and otherwise to the thread that
    attends. The former gives it back before it sends the end of its answer, so `_lock` guards what
    is unsent, and the close.
    """

    def __init__(self, server: Host, client: socket.socket, address: Any) -> None:
        client.setblocking(False)
        self._server = server
        self._socket = client
        self.addr = address
        self.interest = 0
        self.is_answering = False
        """Whether a request is complete and its answer is not."""
        self.waits_since: float = time.monotonic()
        """When the wait for the client began; slow bytes do not postpone it. Never while a request
        is being answered: the client may have its answer before the thread records that."""
        self._request = self._new_request()
        """The one that is to arrive, arrives, or is being answered."""
        self._began: float | None = None
        """When the first byte of an incomplete request arrived."""
        self._unread = b""
        """Pipelined requests: they are read after the previous one is answered."""
        self._unsent: deque[bytes | memoryview] = deque()
        """Parts of answers as the application made them: several clients may get the same bytes."""
        self.unsent_bytes = 0
        """How many bytes of answers the client has not read."""
        self._lock = threading.Lock()
        self._is_last = self._lingers = self._is_gone = False
        self._give_up_at = math.inf
        """When the thread that answers waits for the client no longer."""
        self._environ = {
            **server.environ,
            "REMOTE_ADDR": address[0],
            "REMOTE_PORT": str(address[1]),
        }

    def fileno(self) -> int:
        """The descriptor; -1 once it is closed."""
        return self._socket.fileno()

    def wanted_events(self) -> int:
        """Continue as far as possible; returns the events to wait for."""
        if self.is_answering or self.fileno() < 0:
            return 0
        if self._is_gone:
            self.close()
        elif self.unsent_bytes:
            self._server.unsent.add(self)
            return EVENT_WRITE
        elif self._is_last:
            self._linger()
        elif self._unread:
            unread, self._unread = self._unread, b""
            self._receive(unread)
            return self.wanted_events()
        self._server.unsent.discard(self)
        return EVENT_READ if self.fileno() >= 0 else 0

    def on_ready(self, events: int) -> None:
        """Send, or receive; after the last answer, drop what is received."""
        if events & EVENT_WRITE:
            self._flush()
            return
        try:
            data = self._socket.recv(_RECEIVE_BYTES)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.close()
        elif not self._lingers:
            self._receive(data)

    def on_error(self, error: Exception) -> None:
        """Close only this connection."""
        self._server.log_rate_limited(
            f"a connection could not be opened or served ({error!r})", error
        )
        self.abort()

    def _receive(self, data: bytes) -> None:
        """Read the part of the next request that has arrived, and queue it once it is complete."""
        if self._began is None:
            self._began = time.monotonic()
        self._unread = self._request.receive(data)
        if self._request.completed:
            self._queue()
        elif self._request.awaits_continue:
            self._request.awaits_continue = False
            self._keep(_CONTINUE)
            self._flush()

    def _new_request(self) -> IncomingRequest:
        return IncomingRequest(self._server.hosted.max_body_bytes)

    def _queue(self) -> None:
        self._began, self.waits_since = None, math.inf
        self.is_answering = True
        self._server.add_task(self)

    def service(self) -> None:
        """Answer the request; in a thread of the pool."""
        server, is_kept = self._server, False
        self._give_up_at = time.monotonic() + server.limits.answer_s
        try:
            is_kept = answer(
                server.hosted, self._request, self._environ, self._send, lambda: server.is_stopping
            )
        except ClientGone:
            pass
        finally:
            self._give_back(is_kept=is_kept)

    def _give_back(self, *, is_kept: bool) -> None:
        """Send what the client accepts at once, and wake the loop if there is more to do."""
        self._request, self._is_last = self._new_request(), not is_kept
        # Before the client has its answer, or its next request would come too early.
        self.is_answering = False
        self._flush()
        self.waits_since = time.monotonic()
        is_read = self.interest == EVENT_READ and not (self._unread or self.unsent_bytes)
        if self._is_last or self._is_gone or not is_read:
            self._server.poll.request_update(self)

    def _send(self, data: bytes) -> None:
        """Send a part of an answer, or keep it; in the thread that answers. Raises ClientGone."""
        while self.unsent_bytes > _MAX_AHEAD_BYTES and not self._is_gone:
            left_s = self._give_up_at - time.monotonic()
            ready = select.poll()
            ready.register(self._socket, select.POLLOUT)
            if left_s <= 0 or not ready.poll(1_000 * left_s):
                self._is_gone = True
            self._flush()
        if self._is_gone:
            raise ClientGone
        self._keep(data)
        if self.unsent_bytes >= SOCKET_BUFFER_BYTES:
            self._flush()

    def _keep(self, data: bytes) -> None:
        with self._lock:
            self._unsent.append(data)
            self.unsent_bytes += len(data)

    def _flush(self) -> None:
        with self._lock:
            if not self._unsent:
                return
            try:
                sent = self._socket.sendmsg(list(islice(self._unsent, _MAX_PIECES)))
            except BlockingIOError:
                return
            except OSError:
                self._is_gone = True
                return
            self.unsent_bytes -= sent  # at once: the loop looks at it without the lock
            while sent:
                piece = self._unsent.popleft()
                if sent < len(piece):
                    self._unsent.appendleft(memoryview(piece)[sent:])
                sent -= min(sent, len(piece))

    def _linger(self) -> None:
        """After the last answer, shut down writing, and wait for the client to close.

        An immediate close would reset the connection while its client still sends, and the client
        would lose the answer.
        """
        if not self._lingers:
            try:
                self._socket.shutdown(socket.SHUT_WR)
            except OSError:
                self.close()
            self._lingers, self.waits_since = True, time.monotonic()

    @property
    def path(self) -> str | None:
        """The path of the request to answer; None if the request is not valid."""
        return None if self._request.error else self._request.path

    @property
    def caller(self) -> str:
        """The caller of the request to answer."""
        return self._server.hosted.callers.name(self._request.headers, self.addr[0])

    @property
    def may_write(self) -> bool:
        """Whether the request may change something, by its method."""
        return not self._request.error and self._request.command not in ("GET", "HEAD", "OPTIONS")

    @property
    def is_clients_turn(self) -> bool:
        """Whether the server waits for the client: to send a request, or to read a response."""
        is_answered = self.is_answering or self.waits_since == math.inf
        return not is_answered and not (self._unread and not self.unsent_bytes)

    def enforce_timeouts(self, now: float, limits: ServerLimits) -> None:
        """Close the connection if the client exceeded a timeout."""
        if self.is_answering:
            return
        if self._began is not None:
            if now - self._began > limits.request_s:
                self._request.error = Fault(408, "The request did not arrive in time")
                self._queue()
            return
        allowed_s = limits.choose_wait_s(is_ending=self._lingers, unsent=self.unsent_bytes)
        if now - self.waits_since > allowed_s:
            self.abort()

    def cancel(self) -> None:
        """Drop the request: the pool ends before it was begun."""
        self.is_answering, self._is_gone = False, True

    def abort(self) -> None:
        """End the connection now, and drop what the client has not read, the kernel's part too."""
        if self.unsent_bytes:
            with contextlib.suppress(OSError):
                self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
        self.close()

    def close(self) -> None:
        """Close: stop watching and counting the connection."""
        self._server.poll.unregister(self)
        self._server.connections.discard(self)
        self._server.unsent.discard(self)
        with self._lock:
            self._socket.close()
            self._unsent.clear()
            self.unsent_bytes = 0
