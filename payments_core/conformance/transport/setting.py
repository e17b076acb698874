"""What a transport's suite class overrides, and what the checks share."""

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
from payments_core.conformance.transport.servers import HERE, OK, Serve, Server, saying
from payments_core.webhooks.destinations import Target
from payments_core.webhooks.transports.port import Deadline, Outcome, Request, Transport

HEADERS = {"Content-Type": "application/json", "x-service-event": "e"}


class Setting:
    """Override `open`, and the times where the machine is slow."""

    slack_s: float = 1.5
    """How much later than its deadline an attempt may end."""

    endless_s: float = 8.0
    """The deadline of attempts that must not need it: half of it has to do."""

    def open(self, authority: Path | None) -> Transport:
        """A transport that trusts this authority's certificates, or the system's authorities."""
        raise NotImplementedError  # the transport's own test class says how

    # What a test runner calls around each check.

    def setup_method(self) -> None:
        """Before each check."""
        self._servers: list[Server] = []
        self._transports: list[Transport] = []

    def teardown_method(self) -> None:
        """After each check."""
        for transport in self._transports:
            transport.close()
        for server in self._servers:
            server.close()

    # What the checks share.

    def transport(self, authority: Path | None = None) -> Transport:
        """A transport, closed after the check."""
        self._transports.append(self.open(authority))
        return self._transports[-1]

    def trusting(self) -> Transport:
        """A transport that trusts the suite's authority."""
        return self.transport(certificates().authority)

    def server(
        self,
        serve: Serve | None = None,
        *,
        certificate: Path | None = None,
        raw: Callable[[socket.socket], None] | None = None,
        address: str = HERE,
        port: int = 0,
    ) -> Server:
        """A server, closed after the check; it speaks TLS if it has a certificate."""
        tls: ssl.SSLContext | None = None
        if certificate is not None:
            tls = server_context(certificate)
        server = Server(serve or saying(OK), tls, raw, address, port)
        self._servers.append(server)
        return server

    def post(
        self,
        transport: Transport,
        server: Server,
        *,
        scheme: str = "http",
        name: str = NAME,
        addresses: Sequence[str] = (HERE,),
        headers: Mapping[str, str] = HEADERS,
        body: bytes = b'{"a":1}',
        timeout_s: float = 10.0,
    ) -> Outcome:
        """Send a request to the server's port; it must end with the deadline, and not raise."""
        request = Request(Target(scheme, name, server.port, "/hook?a=b"), headers, body)
        began = time.monotonic()
        outcome = transport.send(request, addresses, Deadline.after(timeout_s))
        took = time.monotonic() - began
        assert took < timeout_s + self.slack_s, f"it took {took:.2f} s of {timeout_s:.2f}"
        return outcome


def require_answer(outcome: Outcome, status: int = 200) -> None:
    """The outcome must be an answer with this status."""
    assert outcome.status == status, f"{outcome} is not an answer with {status}"


def require_failure(outcome: Outcome) -> None:
    """The outcome must be no answer, and say why."""
    assert outcome.status is None, f"{outcome} is an answer"
    assert outcome.failure, "no answer, and nobody says why"
