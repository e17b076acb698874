"""What each transport says of a failure, and what it needs to be made; the rest is in the suite."""

from __future__ import annotations

import ssl
import sys
import threading
from collections.abc import Callable, Iterator

import pytest

from payments_core.conformance.transport.certificates import (
    NAME,
    OTHER_NAME,
    certificates,
    server_context,
)
from payments_core.conformance.transport.servers import (
    LOOPBACK_ADDRESS,
    OK,
    LocalServer,
    reset_connection,
    respond_with,
)
from payments_core.webhooks.destinations import Destination
from payments_core.webhooks.transports.curl import CurlTransport
from payments_core.webhooks.transports.port import (
    Deadline,
    Transport,
    TransportResult,
    WebhookRequest,
)
from payments_core.webhooks.transports.sockets import SocketTransport

Start = Callable[..., LocalServer]
SECRET = b"WHAT-THE-OTHER-SIDE-SAYS"


@pytest.fixture
def start() -> Iterator[Start]:
    servers: list[LocalServer] = []

    def make(*arguments, **options) -> LocalServer:  # type: ignore[no-untyped-def]
        servers.append(LocalServer(*arguments, **options))
        return servers[-1]

    yield make
    for server in servers:
        server.close()


@pytest.fixture(params=["threads", "curl"])
def transport(request: pytest.FixtureRequest) -> Iterator[Transport]:
    authority = certificates().ca_file
    made: Transport
    if request.param == "curl":
        pytest.importorskip("pycurl")
        made = CurlTransport(authority)
    else:
        made = SocketTransport(ssl.create_default_context(cafile=str(authority)))
    yield made
    made.close()


def post(
    transport: Transport,
    server: LocalServer,
    scheme: str = "http",
    name: str = NAME,
    timeout_s: float = 10.0,
    headers: dict[str, str] | None = None,
) -> TransportResult:
    request = WebhookRequest(Destination(scheme, name, server.port, "/"), headers or {}, b"{}")
    return transport.send(request, [LOOPBACK_ADDRESS], Deadline.after(timeout_s))


def test_a_failure_is_reported_in_our_words(start: Start, transport: Transport) -> None:
    good, over = server_context(certificates().good), threading.Event()
    words = {
        post(transport, start(respond_with(OK), good), "https", OTHER_NAME).failure,
        post(transport, start(respond_with(b"HTTP/1.1 " + SECRET))).failure,
        post(transport, start(respond_with(SECRET))).failure,
        post(transport, start(respond_with(b""))).failure,
        post(transport, start(on_connect=reset_connection)).failure,
        post(transport, start(on_connect=lambda it: it.sendall(SECRET)), "https").failure,
        post(transport, start(lambda connection, request: True), timeout_s=0.3).failure,
        post(transport, start(on_connect=lambda it: bool(over.wait(10))), "https",
             timeout_s=0.3).failure,
    }  # fmt: skip
    over.set()
    assert None not in words
    assert "the TLS certificate was refused" in words
    assert "timed out while waiting for the response" in words
    assert "timed out while connecting" in words
    assert SECRET.decode() not in repr(words)


def test_a_closed_transport_still_sends_and_keeps_nothing(
    start: Start, transport: Transport
) -> None:
    """A worker may be at its last delivery when the service ends."""
    server = start(respond_with(OK, keep=True))
    transport.close()
    for count in (1, 2):
        assert post(transport, server).status == 200
        assert server.connections == count


def test_closing_closes_what_is_kept(start: Start, transport: Transport) -> None:
    ended: list[bool] = []

    def serve(connection, request) -> bool:  # type: ignore[no-untyped-def]
        connection.sendall(OK)
        ended.append(connection.recv(1) == b"")
        server.closing.set()
        return False

    server = start(serve)
    assert post(transport, server).status == 200
    transport.close()
    assert server.closing.wait(10)
    assert ended == [True]


@pytest.mark.parametrize("kind", ["threads", "curl"])
def test_what_waits_is_closed_after_a_while(start: Start, kind: str) -> None:
    if kind == "curl":
        pytest.importorskip("pycurl")
    made: Transport
    made = CurlTransport(idle_s=0.05) if kind == "curl" else SocketTransport(idle_s=0.05)

    def serve(connection, request) -> bool:  # type: ignore[no-untyped-def]
        connection.sendall(OK)
        assert connection.recv(1) == b""
        server.closing.set()
        return False

    server = start(serve)
    assert post(made, server).status == 200
    assert server.closing.wait(10)
    made.close()


def test_a_context_that_does_not_verify_is_not_taken() -> None:
    unnamed = ssl.create_default_context()
    unnamed.check_hostname = False
    optional = ssl.create_default_context()
    optional.check_hostname = False
    optional.verify_mode = ssl.CERT_OPTIONAL
    for context in (unnamed, optional):
        with pytest.raises(ValueError, match="verify"):
            SocketTransport(context)


def test_without_pycurl_the_curl_transport_cannot_be_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pycurl", None)
    with pytest.raises(ImportError):
        CurlTransport()
