"""Servers that never end: one deadline bounds them, and the bytes read are limited."""

from __future__ import annotations

import socket
import threading
import time

from payments_core.conformance.transport.harness import Harness, require_failure, require_response
from payments_core.conformance.transport.servers import (
    SOCKET_TIMEOUT_S,
    respond_endlessly,
    respond_slowly,
)
from payments_core.webhooks.transports.port import MAX_RESPONSE_BODY_BYTES, TransportResult

SHORT_TIMEOUT_S = 0.5
HEAD = b"HTTP/1.1 200 OK\r\n"
BLOCK = b"x" * 65_536


class LimitChecks(Harness):
    """Bounds for a slow or endless other side."""

    def test_a_head_that_drips_meets_the_deadline(self) -> None:
        transport = self.open_transport()
        interim = b"HTTP/1.1 100 Continue\r\n\r\n"
        for drip in (HEAD + b"x-a: " + b"b" * 200, HEAD + b"a: b\r\n" * 40, interim * 8):
            server = self.start_server(respond_slowly(b"", drip))
            require_failure(self.post(transport, server, timeout_s=SHORT_TIMEOUT_S))

    def test_a_body_that_drips_meets_the_deadline_and_the_status_counts(self) -> None:
        transport = self.open_transport()
        for head in (
            b"Content-Length: 5000\r\n\r\n",
            b"\r\n",
            b"Transfer-Encoding: chunked\r\n\r\n",
        ):
            drip = b"1\r\nx\r\n" * 40 if b"chunked" in head else b"x" * 240
            server = self.start_server(respond_slowly(HEAD + head, drip))
            outcome = self.post(transport, server, timeout_s=SHORT_TIMEOUT_S)
            require_response(outcome)
            assert len(outcome.body) < 200

    def test_silence_meets_the_deadline(self) -> None:
        def serve(connection: socket.socket, request: bytes) -> bool:
            return not server.closing.wait(SOCKET_TIMEOUT_S)

        server = self.start_server(serve)
        require_failure(self.post(self.open_transport(), server, timeout_s=SHORT_TIMEOUT_S))

    def test_a_server_that_reads_nothing_meets_the_deadline(self) -> None:
        server = self.start_server(raw=lambda connection: _wait(server.closing))
        body = b"x" * 30_000_000
        require_failure(
            self.post(self.open_transport(), server, timeout_s=SHORT_TIMEOUT_S, body=body)
        )

    def test_an_endless_body_is_cut(self) -> None:
        transport = self.open_transport()
        for head in (b"\r\n", b"Content-Length: 2000000000\r\n\r\n"):
            server = self.start_server(respond_endlessly(HEAD + head, BLOCK))
            began = time.monotonic()
            outcome = self.post(transport, server, timeout_s=self.endless_timeout_s)
            assert outcome == TransportResult(200, b"x" * MAX_RESPONSE_BODY_BYTES)
            assert time.monotonic() - began < self.endless_timeout_s / 2, (
                "the transport must stop reading a response that is too large"
            )

    def test_endless_chunks_are_cut(self) -> None:
        head = b"Transfer-Encoding: chunked\r\n\r\n"
        server = self.start_server(respond_endlessly(HEAD + head, b"10\r\n" + b"x" * 16 + b"\r\n"))
        began = time.monotonic()
        outcome = self.post(self.open_transport(), server, timeout_s=self.endless_timeout_s)
        assert outcome == TransportResult(200, b"x" * MAX_RESPONSE_BODY_BYTES)
        assert time.monotonic() - began < self.endless_timeout_s / 2, (
            "the transport must stop reading a response that is too large"
        )

    def test_trailers_without_end_are_not_read(self) -> None:
        chunks = b"Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n"
        server = self.start_server(respond_endlessly(HEAD + chunks, b"x: y\r\n" * 1000))
        began = time.monotonic()
        outcome = self.post(self.open_transport(), server, timeout_s=self.endless_timeout_s)
        assert outcome == TransportResult(200, b"ok")
        assert time.monotonic() - began < self.endless_timeout_s / 2, (
            "the transport must limit the size of trailers"
        )

    def test_an_endless_head_is_a_failure(self) -> None:
        transport = self.open_transport()
        for block in (b"x: y\r\n" * 1000, BLOCK, b"HTTP/1.1 100 Continue\r\n\r\n" * 1000):
            server = self.start_server(respond_endlessly(HEAD if block[:1] == b"x" else b"", block))
            began = time.monotonic()
            require_failure(self.post(transport, server, timeout_s=self.endless_timeout_s))
            assert time.monotonic() - began < self.endless_timeout_s / 2, (
                "the transport must limit the size of the response head"
            )


def _wait(event: threading.Event) -> None:
    event.wait(SOCKET_TIMEOUT_S)
