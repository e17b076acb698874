"""The hooks of a transport's suite class, and the shared parts of the checks."""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from payments_core.conformance.transport.certificates import (
    NAME,
    certificates,
    server_context,
)
from payments_core.conformance.transport.servers import (
    LOOPBACK_ADDRESS,
    OK,
    OTHER_LOOPBACK_ADDRESS,
    LocalServer,
    RequestHandler,
    respond_with,
)
from payments_core.webhooks.destinations import Destination
from payments_core.webhooks.transports.port import (
    Deadline,
    Transport,
    TransportResult,
    WebhookRequest,
)

HEADERS = {"Content-Type": "application/json", "x-service-event": "e"}
MOST_PORTS = 20
"""How many ports `start_pair` tries."""


class Harness:
    """Override `open`, and the times if the machine is slow."""

    deadline_slack_s: float = 1.5
    """How much later than its deadline an attempt may end."""

    endless_timeout_s: float = 8.0
    """The deadline of attempts that must not need it: half of it must be enough."""

    def open(self, ca_file: Path | None) -> Transport:
        """A transport that trusts this authority's certificates, or the system's authorities."""
        raise NotImplementedError  # the transport's own test class says how

    # What a test runner calls around each check.

    def setup_method(self) -> None:
        """Before each check."""
        self._servers: list[LocalServer] = []
        self._transports: list[Transport] = []

    def teardown_method(self) -> None:
        """After each check."""
        for transport in self._transports:
            transport.close()
        for server in self._servers:
            server.close()

    # Shared by the checks.

    def open_transport(self, ca_file: Path | None = None) -> Transport:
        """A transport, closed after the check."""
        self._transports.append(self.open(ca_file))
        return self._transports[-1]

    def open_trusting_transport(self) -> Transport:
        """A transport that trusts the suite's authority."""
        return self.open_transport(certificates().ca_file)

    def start_server(
        self,
        serve: RequestHandler | None = None,
        *,
        certificate: Path | None = None,
        raw: Callable[[socket.socket], None] | None = None,
        address: str = LOOPBACK_ADDRESS,
        port: int = 0,
    ) -> LocalServer:
        """A server, closed after the check; it speaks TLS if it has a certificate."""
        tls: ssl.SSLContext | None = None
        if certificate is not None:
            tls = server_context(certificate)
        server = LocalServer(serve or respond_with(OK), tls, raw, address, port)
        self._servers.append(server)
        return server

    def start_pair(
        self, serve: RequestHandler | None = None, serve_second: RequestHandler | None = None
    ) -> tuple[LocalServer, LocalServer]:
        """Servers with the same port, at OTHER_LOOPBACK_ADDRESS and at LOOPBACK_ADDRESS."""
        for _ in range(MOST_PORTS):
            first = self.start_server(serve, address=OTHER_LOOPBACK_ADDRESS)
            try:
                return first, self.start_server(serve_second, port=first.port)
            except OSError:
                continue  # that port of the other address is somebody else's
        raise AssertionError(f"{MOST_PORTS} free ports of one loopback address are not of both")

    def post(
        self,
        transport: Transport,
        server: LocalServer,
        *,
        scheme: str = "http",
        name: str = NAME,
        addresses: Sequence[str] = (LOOPBACK_ADDRESS,),
        headers: Mapping[str, str] = HEADERS,
        body: bytes = b'{"a":1}',
        timeout_s: float = 10.0,
    ) -> TransportResult:
        """Send a request to the server's port; it must end with the deadline, and not raise."""
        request = WebhookRequest(Destination(scheme, name, server.port, "/hook?a=b"), headers, body)
        began = time.monotonic()
        outcome = transport.send(request, addresses, Deadline.after(timeout_s))
        took = time.monotonic() - began
        assert took < timeout_s + self.deadline_slack_s, f"it took {took:.2f} s of {timeout_s:.2f}"
        return outcome


def require_response(outcome: TransportResult, status: int = 200) -> None:
    """The outcome must be an answer with this status."""
    assert outcome.status == status, f"{outcome} is not an answer with {status}"


def require_failure(outcome: TransportResult) -> None:
    """The outcome must have no answer, and a reason."""
    assert outcome.status is None, f"{outcome} is an answer"
    assert outcome.failure, "an attempt without a response must give a reason"
