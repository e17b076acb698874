"""The local side of `payments listen`: verifies deliveries and forwards them unchanged."""

from __future__ import annotations

import http.client
import secrets
from collections.abc import Callable, Mapping
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import urlsplit

import attrs

from payments_core.webhooks import WebhookRefused, verify
from payments_core_http.cli.interrupts import Interrupts
from payments_core_http.cli.reader import is_reader_gone

MAX_BODY_BYTES = 1024 * 1024
MAX_RESPONSE_BYTES = 4096
FORWARD_TIMEOUT_S = 8.0
"""Less than the sandbox waits for an answer, so that a slow target is reported as slow."""

HOP_BY_HOP_HEADERS = frozenset({
    "connection", "content-length", "expect", "host", "keep-alive", "te", "transfer-encoding",
    "upgrade",
})  # fmt: skip
"""Headers of one connection; all others are forwarded unchanged."""


class InvalidTarget(ValueError):
    """An address to which nothing can be forwarded; the text says why."""


@attrs.frozen
class ForwardResult:
    """The result of a forward: a status, or why there is none."""

    status: int | None = None
    body: bytes = b""
    retry_after: str | None = None
    failure: str | None = None


@attrs.frozen
class ForwardTarget:
    """Where deliveries are forwarded to."""

    url: str
    host: str
    port: int | None
    path: str
    tls: bool

    @classmethod
    def of(cls, url: str) -> ForwardTarget:
        """The target of an http:// or https:// address. Raises InvalidTarget."""
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError as error:
            raise InvalidTarget(f"{url!r} is not a URL: {error}") from error
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InvalidTarget(f"{url!r} is not an http:// or https:// URL")
        if parts.username is not None or any(ord(c) <= 32 or ord(c) > 126 for c in url):
            raise InvalidTarget(
                "the URL must not contain credentials, spaces or special characters"
            )
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        return cls(url, parts.hostname, port, path, parts.scheme == "https")

    def send(self, body: bytes, headers: Mapping[str, str]) -> ForwardResult:
        """One POST with that body and those headers; redirects are not followed."""
        kind = http.client.HTTPSConnection if self.tls else http.client.HTTPConnection
        connection = kind(self.host, self.port, timeout=FORWARD_TIMEOUT_S)
        try:
            connection.putrequest("POST", self.path, skip_accept_encoding=True)
            for name, value in headers.items():
                if name.lower() not in HOP_BY_HOP_HEADERS:
                    connection.putheader(name, value)
            connection.putheader("Content-Length", str(len(body)))
            connection.endheaders(body)
            response = connection.getresponse()
            return ForwardResult(
                response.status,
                response.read(MAX_RESPONSE_BYTES),
                response.getheader("Retry-After"),
            )
        except TimeoutError:
            return ForwardResult(failure=f"no answer within {FORWARD_TIMEOUT_S:.0f} s")
        except ConnectionRefusedError:
            return ForwardResult(failure="connection refused: nothing listens at this address")
        except (OSError, http.client.HTTPException) as error:
            return ForwardResult(failure=f"{type(error).__name__}: {error}")
        finally:
            connection.close()


@attrs.frozen
class DeliveryReport:
    """A delivery and its result: refused, or verified and perhaps forwarded."""

    name: str
    event_id: str
    delivery_id: str
    answer: ForwardResult | None = None
    refused: str | None = None


ReportDelivery = Callable[[DeliveryReport], None]


class ForwardingServer(ThreadingHTTPServer):
    """Listens on its own port and path, only on this machine."""

    daemon_threads = True

    def __init__(
        self, target: ForwardTarget | None, report: ReportDelivery, interrupts: Interrupts
    ) -> None:
        super().__init__(("127.0.0.1", 0), ForwardingHandler)
        self.target = target
        self._report = report
        self._interrupts = interrupts
        self.secret = ""
        self.path: str = f"/{secrets.token_hex(12)}"
        self.url: str = f"http://127.0.0.1:{self.server_port}{self.path}"

    def serve(self) -> None:
        """Serve until a signal ends it. Raises BrokenPipeError if the reader ends."""
        self.serve_forever(poll_interval=0.1)

    def report(self, delivery: DeliveryReport) -> None:
        """Report a delivery; without a reader of the reports, `serve` ends soon."""
        with suppress(BrokenPipeError):
            self._report(delivery)

    def service_actions(self) -> None:
        """End serving after a signal or without a reader, also if there is nothing to report."""
        self._interrupts.check()
        if is_reader_gone(0):
            raise BrokenPipeError

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Report nothing: a sender that ends in the middle breaks its connection."""


class ForwardingHandler(BaseHTTPRequestHandler):
    """Answers the sandbox with the target's answer; 502 if there was none."""

    server: ForwardingServer
    protocol_version = "HTTP/1.1"
    timeout = 10

    def do_POST(self) -> None:
        """Receive one delivery."""
        length = self.headers.get("Content-Length", "")
        if self.path != self.server.path:
            self._respond(404)
        elif not length.isdecimal() or int(length) > MAX_BODY_BYTES:
            self._respond(400)
        else:
            body = self.rfile.read(int(length))
            if len(body) == int(length):  # else the sender was cut off
                self._forward(body)

    def _forward(self, body: bytes) -> None:
        headers = dict(self.headers.items())
        delivery_id = headers.get("x-service-delivery", "")
        try:
            event = verify(body, headers, self.server.secret)
        except WebhookRefused as refusal:
            self.server.report(DeliveryReport("", "", delivery_id, refused=refusal.code))
            self._respond(400)
            return
        target = self.server.target
        answer = ForwardResult(204) if target is None else target.send(body, headers)
        reported = None if target is None else answer
        self.server.report(DeliveryReport(event.name, event.id, delivery_id, answer=reported))
        if answer.status is None:
            self._respond(502, (answer.failure or "").encode())
        else:
            self._respond(answer.status, answer.body, answer.retry_after)

    def _respond(self, status: int, body: bytes = b"", retry_after: str | None = None) -> None:
        self.close_connection = True
        if status in (204, 304):
            body = b""
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Connection", "close")
        if retry_after is not None:
            self.send_header("Retry-After", retry_after)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing: `report` reports each delivery once."""
