"""The default transport: the standard library, one connection per attempt, in the caller's thread.

Worker threads call it, so it needs none of its own. A socket's timeout counts from each call,
and a server that drips a byte a second would never meet it: here every call gets what is left of
the one deadline.
"""

from __future__ import annotations

import io
import socket
import ssl
from collections.abc import Sequence
from contextlib import closing
from http.client import HTTPException, HTTPResponse
from typing import Any

from payments_core.webhooks.transports.port import KEPT_BYTES, Deadline, Outcome, Request

HEAD_BYTES = 64 * 1024
"""A response that has not got to its body by then never will."""

INTERIM_RESPONSES = 8


class ThreadsTransport:
    """Sends each request over a connection of its own."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        """`tls` verifies certificates and names; the system's authorities unless given."""
        self._tls = ssl.create_default_context() if tls is None else tls
        if not self._tls.check_hostname or self._tls.verify_mode != ssl.CERT_REQUIRED:
            raise ValueError("the TLS context must verify certificates and names")

    def send(self, request: Request, addresses: Sequence[str], deadline: Deadline) -> Outcome:
        packed = _packed(request)
        try:
            connection = self._connected(request, addresses, deadline)
        except (OSError, ValueError) as error:
            return Outcome(failure=_failure("connecting", error))
        with closing(connection):
            try:
                _send_all(connection, packed, deadline)
                return _answer(connection, deadline)
            except (OSError, HTTPException, ValueError) as error:
                return Outcome(failure=_failure("waiting for the response", error))

    def close(self) -> None:
        """Nothing stays open between two requests."""

    def _connected(
        self, request: Request, addresses: Sequence[str], deadline: Deadline
    ) -> socket.socket:
        target = request.target
        connection = _tcp(addresses, target.port, deadline)
        if target.scheme == "http":
            return connection
        try:
            connection.settimeout(_left(deadline))  # bounds the handshake as a whole
            return self._tls.wrap_socket(connection, server_hostname=target.host)
        except BaseException:
            connection.close()
            raise


def _tcp(addresses: Sequence[str], port: int, deadline: Deadline) -> socket.socket:
    """A connection to the first address that accepts one; each has its share of the time."""
    last: OSError = OSError("there is no address")
    for tried, address in enumerate(addresses):
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        connection = socket.socket(family, socket.SOCK_STREAM)
        try:
            connection.settimeout(_left(deadline) / (len(addresses) - tried))
            connection.connect((address, port))
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return connection
        except OSError as error:
            connection.close()
            last = error
    raise last


def _send_all(connection: socket.socket, data: bytes, deadline: Deadline) -> None:
    view = memoryview(data)
    while view:
        connection.settimeout(_left(deadline))
        view = view[connection.send(view) :]


def _packed(request: Request) -> bytes:
    headers = {
        "Host": request.target.authority,
        **request.headers,
        "Content-Length": str(len(request.body)),
        "Connection": "close",
    }
    lines = [f"POST {request.target.path} HTTP/1.1"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    if any("\r" in line or "\n" in line for line in lines):
        raise ValueError("a header of the request has a line break")
    return "\r\n".join([*lines, "", ""]).encode("ascii") + request.body


def _answer(connection: socket.socket, deadline: Deadline) -> Outcome:
    stream = _Stream(connection, deadline, HEAD_BYTES)
    response = _final_response(stream)
    stream.allowance += HEAD_BYTES
    return Outcome(
        status=response.status,
        body=_start_of_body(response),
        retry_after=response.getheader("Retry-After"),
    )


def _final_response(stream: _Stream) -> HTTPResponse:
    """The response after the interim ones; 103 may come before it, and any number of 100s."""
    reader = _Reader(stream)
    for _ in range(INTERIM_RESPONSES):
        response = HTTPResponse(_Replayed(reader), method="POST")  # type: ignore[arg-type]
        response.begin()
        if response.status >= 200 or response.status == 101:
            return response
    raise HTTPException("only interim responses")


def _start_of_body(response: HTTPResponse) -> bytes:
    kept = b""
    try:
        while len(kept) < KEPT_BYTES and (more := response.read1(KEPT_BYTES - len(kept))):
            kept += more
    except (OSError, HTTPException, ValueError):
        pass  # the status has come, and it is the answer
    return kept[:KEPT_BYTES]


class _Stream(io.RawIOBase):
    """Reads from a socket under the one deadline, and no more than it is allowed."""

    def __init__(self, connection: socket.socket, deadline: Deadline, allowance: int) -> None:
        super().__init__()
        self._connection = connection
        self._deadline = deadline
        self.allowance = allowance

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._connection.settimeout(_left(self._deadline))
        view = memoryview(buffer)[: max(0, self.allowance)]
        if not view:
            raise HTTPException("the response is too large")
        count = self._connection.recv_into(view)
        self.allowance -= count
        return count


class _Reader(io.BufferedReader):
    """Stays open when a response is done with it: an interim one closes it on its way out."""

    def close(self) -> None:
        """The connection is closed by its owner."""


class _Replayed:
    """What HTTPResponse takes for a socket: it reads on where the response before ended."""

    def __init__(self, reader: io.BufferedReader) -> None:
        self._reader = reader

    def makefile(self, mode: str) -> io.BufferedReader:
        return self._reader


def _left(deadline: Deadline) -> float:
    left = deadline.remaining_s()
    if left <= 0:
        raise TimeoutError("the deadline has passed")
    return left


def _failure(doing: str, error: Exception) -> str:
    """Why no answer came, without the text of the error, which the other side may have shaped."""
    if isinstance(error, TimeoutError):
        return f"no timely answer while {doing}"
    if isinstance(error, ssl.SSLCertVerificationError):
        return "the TLS certificate was refused"
    return f"{type(error).__name__} while {doing}"
