"""Servers of the suite: real sockets on loopback with scripted behaviour, good or bad."""

from __future__ import annotations

import socket
import ssl
import struct
import threading
import unittest
from collections.abc import Callable
from contextlib import suppress

import attrs

RequestHandler = Callable[[socket.socket, bytes], bool]
"""Handles a complete request; returns whether another may come over the connection."""

_ERRORS = (OSError, ValueError)
"""Errors of the servers are ignored: only the transport's side matters."""

SOCKET_TIMEOUT_S = 20.0
LOOPBACK_ADDRESS = "127.0.0.1"
OTHER_LOOPBACK_ADDRESS = "127.0.0.2"
"""Another address of this machine, if the system gives loopback more than one."""


OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


def respond_with(response: bytes, *, keep: bool = False) -> RequestHandler:
    """Make a handler that sends `response` to every request."""

    def serve(connection: socket.socket, request: bytes) -> bool:
        connection.sendall(response)
        return keep

    return serve


def respond_ok(connection: socket.socket, request: bytes) -> bool:
    """OK, and then the end of the connection."""
    connection.sendall(OK)
    return False


@attrs.define(eq=False)
class LocalServer:
    """Accepts connections until it is closed, one thread for each.

    With `on_connect` it does that to each connection as it is accepted, and reads nothing itself.
    """

    serve: RequestHandler = respond_ok
    tls: ssl.SSLContext | None = None
    on_connect: Callable[[socket.socket], None] | None = None
    address: str = LOOPBACK_ADDRESS
    port: int = 0
    connections: int = 0
    requests: list[bytes] = attrs.field(factory=list)
    closing: threading.Event = attrs.field(factory=threading.Event)
    _open: set[socket.socket] = attrs.field(factory=set)
    _listener: socket.socket = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        try:
            self._listener = socket.create_server((self.address, self.port))
        except OSError as error:
            if self.address == OTHER_LOOPBACK_ADDRESS:
                raise unittest.SkipTest(
                    f"{OTHER_LOOPBACK_ADDRESS} is not an address of this system"
                ) from error
            raise
        self.port = int(self._listener.getsockname()[1])
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Stop accepting, and end open connections."""
        self.closing.set()
        with suppress(*_ERRORS):  # wakes `accept`
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for connection in tuple(self._open):
            with suppress(*_ERRORS):
                connection.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        while not self.closing.is_set():
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            self._open.add(connection)
            threading.Thread(target=self._serve_connection, args=(connection,), daemon=True).start()

    def _serve_connection(self, accepted: socket.socket) -> None:
        connection = accepted
        try:
            with suppress(*_ERRORS):
                connection.settimeout(SOCKET_TIMEOUT_S)
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                if self.on_connect is not None:
                    self.on_connect(connection)
                    return
                if self.tls is not None:
                    connection = self.tls.wrap_socket(connection, server_side=True)
                while request := read_request(connection):
                    self.requests.append(request)
                    if not self.serve(connection, request):
                        break
        finally:
            self._open.discard(accepted)
            connection.close()


def read_request(connection: socket.socket) -> bytes:
    """A complete request; nothing if the connection ends before."""
    data = b""
    while b"\r\n\r\n" not in data:
        more = connection.recv(65536)
        if not more:
            return b""
        data += more
    head, _, body = data.partition(b"\r\n\r\n")
    (line,) = [row for row in head.split(b"\r\n") if row.lower().startswith(b"content-length:")]
    while len(body) < int(line.split(b":")[1]):
        more = connection.recv(65536)
        if not more:
            return b""
        body += more
    return head + b"\r\n\r\n" + body


def find_header(request: bytes, name: str) -> str | None:
    """The value of a header of a request."""
    for line in request.partition(b"\r\n\r\n")[0].split(b"\r\n")[1:]:
        found, _, value = line.partition(b": ")
        if found.lower() == name.lower().encode():
            return value.decode()
    return None


def respond_slowly(at_once: bytes, response: bytes, pause_s: float = 0.02) -> RequestHandler:
    """Some of a response at once, and then a byte at a time."""

    def serve(connection: socket.socket, request: bytes) -> bool:
        connection.sendall(at_once)
        never = threading.Event()
        for at in range(len(response)):
            connection.sendall(response[at : at + 1])
            never.wait(pause_s)
        return False

    return serve


def respond_endlessly(at_once: bytes, block: bytes) -> RequestHandler:
    """Some of a response, and then the same bytes forever."""

    def serve(connection: socket.socket, request: bytes) -> bool:
        connection.sendall(at_once)
        while True:
            connection.sendall(block)

    return serve


def reset_connection(connection: socket.socket) -> None:
    """End a connection with RST, with data still on its way."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()
