"""The default transport: the standard library, in the caller's thread, connections kept alive.

Each thread has its own connection while it sends; between two requests they wait together
(`http/connection_pool.py`). A connection is used again for the same scheme, name, port and address
only, and only if that address is among those vetted for this attempt. TLS sessions are not
resumed: that would skip a certificate's verification, to save what keep-alive already saves.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Sequence
from functools import cached_property

from payments_core.http.connection_pool import IDLE_TIMEOUT_S, ConnectionKey, ConnectionPool
from payments_core.http.deadline import require_time_left
from payments_core.http.response import NoResponse, ResponseReader, read_response
from payments_core.http.sockets import connect, prepare, send_all
from payments_core.webhooks.transports.http_request import encode_request
from payments_core.webhooks.transports.port import (
    MAX_RESPONSE_BODY_BYTES,
    Deadline,
    TransportResult,
    WebhookRequest,
)


class SocketTransport:
    """Sends each request over a connection that no other thread uses meanwhile."""

    def __init__(
        self, tls: ssl.SSLContext | None = None, *, idle_s: float = IDLE_TIMEOUT_S
    ) -> None:
        """`tls` verifies certificates and names; by default the system's authorities.

        `idle_s`: how long a connection waits for its next request before it is closed.
        """
        if tls is not None:
            if not tls.check_hostname or tls.verify_mode != ssl.CERT_REQUIRED:
                raise ValueError("the TLS context must verify certificates and names")
            self._tls = tls
        self._idle: ConnectionPool[socket.socket] = ConnectionPool(idle_s)

    def send(
        self, request: WebhookRequest, addresses: Sequence[str], deadline: Deadline
    ) -> TransportResult:
        data = encode_request(request)
        destination = request.destination
        keys = [
            ConnectionKey(destination.scheme, destination.host, destination.port, address)
            for address in addresses
        ]
        if deadline.remaining_s() > 0 and (waiting := self._idle.take(keys)) is not None:
            outcome = self._send_and_receive(*waiting, data, deadline)
            # The other side may have closed it at that moment. It may have read the request;
            # deliveries are made at least once, and carry their id for that.
            if outcome is not None:
                return outcome
        try:
            key, connection = self._connect(keys, deadline)
        except (OSError, ValueError) as error:
            return TransportResult(failure=_describe_failure("connecting", error))
        outcome = self._send_and_receive(key, connection, data, deadline)
        return outcome or TransportResult(failure="the connection was closed before the response")

    def close(self) -> None:
        """Close the connections that wait; those in use end with their request."""
        self._idle.close()

    @cached_property
    def _tls(self) -> ssl.SSLContext:
        # Reading the system's authorities takes longer than the rest of a service's start.
        return ssl.create_default_context()

    def _send_and_receive(
        self, key: ConnectionKey, connection: socket.socket, data: bytes, deadline: Deadline
    ) -> TransportResult | None:
        """The outcome; None if the connection broke before any byte of a response."""
        clean = False
        incoming = ResponseReader(connection, deadline)
        try:
            send_all(connection, data, deadline)
            answer, clean = read_response(incoming, MAX_RESPONSE_BODY_BYTES)
        except TimeoutError as error:
            return TransportResult(failure=_describe_failure("waiting for the response", error))
        except (OSError, NoResponse) as error:
            if not incoming.begun:
                return None
            return TransportResult(failure=_describe_failure("waiting for the response", error))
        finally:
            if clean:
                self._idle.put(key, connection)
            else:
                connection.close()
        return TransportResult(answer.status, answer.body, answer.retry_after)

    def _connect(
        self, keys: Sequence[ConnectionKey], deadline: Deadline
    ) -> tuple[ConnectionKey, socket.socket]:
        key, connection = _connect_tcp(keys, deadline)
        tls = self._tls if key.scheme == "https" else None
        return key, prepare(connection, tls, key.host, deadline)


def _connect_tcp(
    keys: Sequence[ConnectionKey], deadline: Deadline
) -> tuple[ConnectionKey, socket.socket]:
    """A connection to the first address that accepts one; each has its share of the time."""
    last: OSError = OSError("the host has no address")
    for tried, key in enumerate(keys):
        family = socket.AF_INET6 if ":" in key.address else socket.AF_INET
        try:
            socket.inet_pton(family, key.address)  # a name would be looked up again
            share_s = require_time_left(deadline) / (len(keys) - tried)
            return key, connect(family, (key.address, key.port), share_s)
        except OSError as error:
            last = error
    raise last


def _describe_failure(doing: str, error: Exception) -> str:
    """Why no answer came, without the text of the error, which the other side may control."""
    if isinstance(error, TimeoutError):
        return f"timed out while {doing}"
    if isinstance(error, ssl.SSLCertVerificationError):
        return "the TLS certificate was refused"
    if isinstance(error, NoResponse):
        return str(error)
    return f"{type(error).__name__} while {doing}"
