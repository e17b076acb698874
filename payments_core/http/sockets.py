"""Sockets under one deadline: connecting, TLS, sending, and waiting until there is something to do.

A connection that was opened here does not block. Its user waits with `call_when_ready`.
"""

from __future__ import annotations

import select
import socket
import ssl
from collections.abc import Callable
from typing import Any, TypeVar

from payments_core.http.deadline import Deadline, require_time_left

T = TypeVar("T")


def connect(family: int, place: Any, within_s: float) -> socket.socket:
    """A TCP connection to a socket address of that family. Raises OSError, also TimeoutError."""
    connection = socket.socket(family, socket.SOCK_STREAM)
    try:
        connection.settimeout(within_s)
        connection.connect(place)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    except BaseException:
        connection.close()
        raise
    return connection


def prepare(
    connection: socket.socket, tls: ssl.SSLContext | None, host: str, deadline: Deadline
) -> socket.socket:
    """The connection, under TLS to that host if a context is given, ready for `call_when_ready`.

    It is closed if that fails. Raises OSError, including TimeoutError and SSLError.
    """
    try:
        if tls is not None:
            connection.settimeout(require_time_left(deadline))  # bounds the handshake as a whole
            connection = tls.wrap_socket(connection, server_hostname=host)
        connection.setblocking(False)
    except BaseException:
        connection.close()
        raise
    return connection


def send_all(connection: socket.socket, data: bytes, deadline: Deadline) -> None:
    """Send all bytes. Raises OSError, also TimeoutError."""
    view = memoryview(data)
    while view:
        sent = call_when_ready(connection, select.POLLOUT, deadline, lambda: connection.send(view))  # noqa: B023
        view = view[sent:]


def call_when_ready(
    connection: socket.socket, event: int, deadline: Deadline, act: Callable[[], T]
) -> T:
    """Do something with a socket that does not block, as soon as it can be done.

    A socket's own timeout would count from each call, and a slow sender would never meet it; and
    setting it costs two system calls, around which a thread releases the interpreter.
    Raises OSError, also TimeoutError.
    """
    waits = event == select.POLLIN and not pending_tls_bytes(connection)
    while True:
        within_s = require_time_left(deadline)
        if waits:
            poll = select.poll()
            poll.register(connection, event)
            if not poll.poll(within_s * 1_000):
                continue  # which ends it
        try:
            return act()
        except ssl.SSLWantReadError:
            event, waits = select.POLLIN, True
        except ssl.SSLWantWriteError:
            event, waits = select.POLLOUT, True
        except BlockingIOError:
            waits = True


def pending_tls_bytes(connection: object) -> int:
    """How many bytes TLS has ready, which no poll can see."""
    return connection.pending() if isinstance(connection, ssl.SSLSocket) else 0
