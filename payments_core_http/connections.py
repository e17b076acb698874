"""Connections under waitress, each with bounded time and memory, whatever its client does.

Waitress gives a connection time for as long as a byte moves, reads all requests that arrive
together before it answers the first, cannot end a connection whose client does not read, and lets
nobody in once it is full. Here a connection has one request at a time, every wait for a client has
an end, and where there are too many, those that wait longest give way.
"""

from __future__ import annotations

import contextlib
import logging
import socket
import struct
import time
from collections import Counter
from typing import Any

import attrs
from waitress.channel import HTTPChannel
from waitress.server import TcpWSGIServer
from waitress.task import ErrorTask
from waitress.utilities import BadRequest

from payments_core.errors import PaymentsError
from payments_core.identifiers import Identifiers
from payments_core_http.errors import (
    HeadersTooLarge,
    InternalError,
    MalformedRequest,
    PayloadTooLarge,
    RequestTooSlow,
    TransferCodingUnknown,
    envelope,
    status_of,
)
from payments_core_http.framing import Incoming
from payments_core_http.request_body import LIMIT_BYTES

HEADER_LIMIT_BYTES = 16 * 1024

_LOOK_S = 0.5
"""How often connections are asked whether they have waited too long."""
_ACCEPTS = 64
"""So many new connections are taken at a time; the bound is passed by no more."""
_PAUSE_S = 0.5
_RESET = struct.pack("ii", 1, 0)
_WARN_S = 60.0

_log = logging.getLogger("payments_core_http")


@attrs.frozen(kw_only=True)
class Bounds:
    """How long, and for how many clients, the server waits. Seconds, but for the counts."""

    connections: int = 1_000
    idle_s: float = 60
    """Without a request: after the connection was made, or after an answer."""
    request_s: float = 30
    """From a request's first byte to its last."""
    answer_s: float = 60
    """From an answer's making until the client has taken it."""
    linger_s: float = 2
    """After the last answer, for the client to read it and close."""
    unsent_bytes: int = 64 * 1024 * 1024
    """What clients have not taken yet of their answers, all of them together."""


class RequestTimeout(BadRequest):  # type: ignore[misc]
    """The request did not arrive in time."""

    code = 408
    reason = "Request Timeout"


class Refusal(ErrorTask):  # type: ignore[misc]
    """Answers in our own shape what no application has seen."""

    def execute(self) -> None:
        """Write the answer, the connection's last."""
        server: Listener = self.channel.server
        error = server.refusals.get(self.request.error.code, InternalError())
        request_id = server.identifiers.new("req")
        body = envelope(error, request_id)
        self.status = f"{status_of(type(error))} {self.request.error.reason}"
        self.response_headers += [
            ("Content-Type", "application/json"),
            ("X-Request-Id", request_id),
            ("Service-Version", server.api_version),
            ("Cache-Control", "no-store"),
            ("X-Content-Type-Options", "nosniff"),
        ]
        self.set_close_on_finish()
        self.content_length = len(body)
        self.write(body)


class Connection(HTTPChannel):  # type: ignore[misc]
    """One client's connection. All but `service` runs in the server's loop."""

    error_task_class = Refusal

    connected: bool
    close_when_flushed: bool
    request: Any

    def __init__(self, *args: Any, **more: Any) -> None:
        self.waits_since = time.monotonic()
        """When the client's turn came; bytes that trickle do not put it off."""
        self._began: float | None = None
        """When the first byte came of a request that is not whole yet."""
        self._unread = b""
        """Requests that came with the one before them: they are read when that is answered."""
        self._ends = False
        self._lingers = False
        super().__init__(*args, **more)

    def parser_class(self, settings: Any) -> Incoming:
        """A new request."""
        return Incoming(settings, self._keep)

    def _keep(self, unread: bytes) -> None:
        self._unread = unread

    def readable(self) -> bool:
        """Whether more may be received; goes on first with what was received before."""
        if self._unread and not self.requests and not self.total_outbufs_len:
            self._go_on()
        if not self.connected or self._ends:
            return self.connected and self._lingers
        return not self._unread and bool(super().readable())

    def _go_on(self) -> None:
        # A server that ends finishes what was begun, and begins nothing.
        if self.connected and not (self._ends or self.close_when_flushed or self.will_close):
            unread, self._unread = self._unread, b""
            if self.server.accepting:
                self.received(unread)

    def received(self, data: bytes) -> bool:
        """Read the next request, as far as it is here, and hand it to a thread once it is whole."""
        taken = bool(super().received(data))
        now = time.monotonic()
        if self.request is None:
            self._began, self.waits_since = None, now
        elif self._began is None:
            self._began = now
        return taken

    def handle_read(self) -> None:
        """Receive bytes, or after the last answer drop them."""
        if not self._lingers:
            super().handle_read()
            return
        try:
            self.recv(self.adj.recv_bytes)  # which closes where the client has closed
        except OSError:
            self.handle_close()

    def writable(self) -> bool:
        """Whether something is to be sent, or the end to be told."""
        return self.connected and bool(super().writable())

    def handle_write(self) -> None:
        """Send; after the last answer say that it was the last, and wait for the client to close.

        To close at once would reset the connection while its client still sends, and the client
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
        super().service()
        self.waits_since = time.monotonic()

    @property
    def is_clients_turn(self) -> bool:
        """Whether the server waits for the client: to send, or to take what it asked for."""
        return not self.requests and not (self._unread and not self.total_outbufs_len)

    def judge(self, now: float, bounds: Bounds) -> None:
        """End the connection if the client has had its time."""
        if self.requests or not self.connected:
            return
        if self._began is not None:
            if now - self._began > bounds.request_s:
                self._refuse_as_late()
            return
        if self._lingers:
            allowed_s = bounds.linger_s
        else:
            allowed_s = bounds.answer_s if self.total_outbufs_len else bounds.idle_s
        if now - self.waits_since > allowed_s:
            self.abandon()

    def abandon(self) -> None:
        """End the connection now, and drop what the client has not taken, the kernel's part too.

        Waitress's `will_close` waits until something can be sent, which may be never.
        """
        if self.total_outbufs_len:
            with contextlib.suppress(OSError):
                self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        self.handle_close()

    def _refuse_as_late(self) -> None:
        with self.requests_lock:
            late, self.request, self._began = self.request, None, None
            late.error = RequestTimeout("The request did not arrive in time")
            self.requests.append(late)
            self.server.add_task(self)


class Listener(TcpWSGIServer):  # type: ignore[misc]
    """Accepts connections, and ends those whose time is over or whose room is needed."""

    channel_class = Connection

    def __init__(
        self, *args: Any, identifiers: Identifiers, api_version: str, bounds: Bounds, **more: Any
    ) -> None:
        self.identifiers = identifiers
        self.api_version = api_version
        self.refusals: dict[int, PaymentsError] = {
            400: MalformedRequest(),
            408: RequestTooSlow(),
            413: PayloadTooLarge(LIMIT_BYTES),
            431: HeadersTooLarge(HEADER_LIMIT_BYTES),
            501: TransferCodingUnknown(),
        }
        self._bounds = bounds
        self._looks_at = self._accepts_at = self._warns_at = 0.0
        super().__init__(*args, **more)

    def readable(self) -> bool:
        """Whether to accept; runs at every turn of the loop, and keeps the bounds first."""
        now = time.monotonic()
        connections: list[Connection] = list(self.active_channels.values())
        if now >= self._looks_at:
            self._looks_at = now + _LOOK_S
            for one in connections:
                one.judge(now, self._bounds)
        self._bound_unsent(connections)
        excess = len(self.active_channels) - self._bounds.connections
        if excess > 0:
            self._warn(now, f"more than {self._bounds.connections} connections")
            self._give_way(excess)
        return self.accepting and now >= self._accepts_at and self._has_room()

    def _bound_unsent(self, connections: list[Connection]) -> None:
        excess = sum(one.total_outbufs_len for one in connections) - self._bounds.unsent_bytes
        if excess <= 0:
            return
        slow = [one for one in connections if one.total_outbufs_len and not one.requests]
        for one in sorted(slow, key=lambda one: one.waits_since):
            if excess > 0:
                excess -= one.total_outbufs_len
                one.abandon()

    def _give_way(self, count: int) -> int:
        """End connections whose clients are waited for: of the address with most, the longest.

        How many were ended.
        """
        connections: list[Connection] = list(self.active_channels.values())
        crowd = Counter(one.addr[0] for one in connections)
        waiting = [one for one in connections if one.is_clients_turn]
        waiting.sort(key=lambda one: (-crowd[one.addr[0]], one.waits_since))
        for one in waiting[:count]:
            one.abandon()
        return min(count, len(waiting))

    def _has_room(self) -> bool:
        channels = self.active_channels
        return len(channels) < self._bounds.connections or any(
            one.is_clients_turn for one in channels.values()
        )

    def _warn(self, now: float, what: str) -> None:
        if now >= self._warns_at:
            self._warns_at = now + _WARN_S
            _log.warning("%s: those that wait longest are ended", what)

    def handle_accept(self) -> None:
        """Take who knocks, several at a time; over the bound too, and the next turn makes room.

        None is ended here: its descriptor would go to the next one, with events of the old.
        """
        for _ in range(_ACCEPTS):
            try:
                client, address = self.socket.accept()
            except (BlockingIOError, ConnectionError):
                return
            except OSError as error:  # out of descriptors, most likely
                now = time.monotonic()
                self._warn(now, f"a connection could not be accepted ({error})")
                if not self._give_way(_ACCEPTS):
                    self._accepts_at = now + _PAUSE_S
                return
            with contextlib.suppress(OSError):  # the client may have gone, which shows soon enough
                self.set_socket_options(client)
            self.channel_class(self, client, address, self.adj, map=self._map)
