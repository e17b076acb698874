"""TLS: verified against the name of the target, at any address."""

from __future__ import annotations

import socket
import threading
from pathlib import Path

from payments_core.conformance.transport.certificates import NAME, OTHER_NAME, certificates
from payments_core.conformance.transport.harness import Harness, require_failure, require_response
from payments_core.conformance.transport.servers import (
    SOCKET_TIMEOUT_S,
    LocalServer,
    reset_connection,
)
from payments_core.webhooks.transports.port import Transport, TransportResult

SHORT_TIMEOUT_S = 0.5


class TlsChecks(Harness):
    """No byte of a request goes to a server that the certificate does not name."""

    def test_a_certificate_for_the_name_is_accepted(self) -> None:
        server = self.start_server(certificate=certificates().good)
        require_response(self._post_over_tls(self.open_trusting_transport(), server))

    def test_a_certificate_for_another_name_is_refused(self) -> None:
        server = self.start_server(certificate=certificates().good)
        for name in (OTHER_NAME, f"www.{NAME}", "example", "127.0.0.1"):
            require_failure(self._post_over_tls(self.open_trusting_transport(), server, name))
        assert server.requests == []

    def test_an_expired_certificate_is_refused(self) -> None:
        self._require_refused(certificates().expired, self.open_trusting_transport())

    def test_a_self_signed_certificate_is_refused(self) -> None:
        self._require_refused(certificates().self_signed, self.open_trusting_transport())

    def test_a_certificate_of_an_unknown_authority_is_refused(self) -> None:
        self._require_refused(certificates().good, self.open_transport())

    def test_plain_http_where_tls_is_expected_is_a_failure(self) -> None:
        talking = self.start_server(
            raw=lambda connection: connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        )
        require_failure(self._post_over_tls(self.open_trusting_transport(), talking))
        waiting = self.start_server()
        require_failure(
            self._post_over_tls(self.open_trusting_transport(), waiting, timeout_s=SHORT_TIMEOUT_S)
        )
        assert waiting.requests == []

    def test_a_handshake_that_never_ends_meets_the_deadline(self) -> None:
        silent = self.start_server(raw=lambda connection: _wait(silent.closing))
        require_failure(
            self._post_over_tls(self.open_trusting_transport(), silent, timeout_s=SHORT_TIMEOUT_S)
        )

    def test_a_handshake_that_drips_meets_the_deadline(self) -> None:
        def drip(connection: socket.socket) -> None:
            connection.sendall(b"\x16\x03\x03\x40\x00")  # a record of 16 KB, and then little of it
            while not dripping.closing.wait(0.02):
                connection.sendall(b"\x02")

        dripping = self.start_server(raw=drip)
        require_failure(
            self._post_over_tls(self.open_trusting_transport(), dripping, timeout_s=SHORT_TIMEOUT_S)
        )

    def test_a_reset_during_the_handshake_is_a_failure(self) -> None:
        require_failure(
            self._post_over_tls(
                self.open_trusting_transport(), self.start_server(raw=reset_connection)
            )
        )

    def _require_refused(self, certificate: Path, transport: Transport) -> None:
        server = self.start_server(certificate=certificate)
        require_failure(self._post_over_tls(transport, server))
        assert server.requests == [], "no request may be sent before the certificate is verified"

    def _post_over_tls(
        self,
        transport: Transport,
        server: LocalServer,
        name: str = NAME,
        timeout_s: float = 10.0,
    ) -> TransportResult:
        return self.post(transport, server, scheme="https", name=name, timeout_s=timeout_s)


def _wait(event: threading.Event) -> None:
    event.wait(SOCKET_TIMEOUT_S)
