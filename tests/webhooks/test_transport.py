"""The default transport against real servers on loopback, friendly and hostile."""

from __future__ import annotations

import shutil
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import attrs
import pytest

from payments_core.webhooks.destinations import parse_url
from payments_core.webhooks.transports.port import KEPT_BYTES, Deadline, Outcome, Request
from payments_core.webhooks.transports.threads import ThreadsTransport

Serve = Callable[[socket.socket, bytes], None]
"""What a server does with a connection, once it has read the request."""

NAME = "partner.example"


@attrs.define
class Server:
    """Accepts connections on loopback until it is closed, one thread for each."""

    serve: Serve
    tls: ssl.SSLContext | None = None
    requests: list[bytes] = attrs.field(factory=list)
    closing: threading.Event = attrs.field(factory=threading.Event)
    listener: socket.socket = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.listener.settimeout(0.05)
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def port(self) -> int:
        return int(self.listener.getsockname()[1])

    def _accept(self) -> None:
        while not self.closing.is_set():
            try:
                connection, _ = self.listener.accept()
            except OSError:
                continue
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()
        self.listener.close()

    def _answer(self, connection: socket.socket) -> None:
        try:
            connection.settimeout(10)
            if self.tls is not None:
                connection = self.tls.wrap_socket(connection, server_side=True)
            request = read_request(connection)
            self.requests.append(request)
            self.serve(connection, request)
        except OSError:
            pass
        finally:
            connection.close()


def read_request(connection: socket.socket) -> bytes:
    data = b""
    while b"\r\n\r\n" not in data:
        more = connection.recv(65536)
        if not more:
            return data
        data += more
    head, _, body = data.partition(b"\r\n\r\n")
    (line,) = [x for x in head.split(b"\r\n") if x.lower().startswith(b"content-length:")]
    while len(body) < int(line.split(b":")[1]):
        body += connection.recv(65536)
    return head + b"\r\n\r\n" + body


def saying(response: bytes) -> Serve:
    return lambda connection, request: connection.sendall(response)


@pytest.fixture
def start() -> Iterator[Callable[..., Server]]:
    servers: list[Server] = []

    def make(serve: Serve, tls: ssl.SSLContext | None = None) -> Server:
        servers.append(Server(serve, tls))
        return servers[-1]

    yield make
    for server in servers:
        server.closing.set()


def post(
    server: Server, *, timeout_s: float = 5.0, body: bytes = b'{"a":1}', scheme: str = "http",
    name: str = NAME, tls: ssl.SSLContext | None = None,
    addresses: tuple[str, ...] = ("127.0.0.1",),
) -> Outcome:  # fmt: skip
    target = parse_url(f"{scheme}://{name}:{server.port}/hook?a=b", local_allowed=True)
    request = Request(target, {"Content-Type": "application/json", "x-service-event": "e"}, body)
    return ThreadsTransport(tls).send(request, addresses, Deadline.after(timeout_s))


def test_an_answer_comes_back_with_status_body_and_retry_after(start) -> None:  # type: ignore[no-untyped-def]
    server = start(saying(b"HTTP/1.1 503 Busy\r\nRetry-After: 7\r\nContent-Length: 4\r\n\r\nbusy"))
    assert post(server) == Outcome(503, b"busy", "7")
    (request,) = server.requests
    head, _, body = request.partition(b"\r\n\r\n")
    assert head.split(b"\r\n") == [
        b"POST /hook?a=b HTTP/1.1",
        b"Host: partner.example:%d" % server.port,
        b"Content-Type: application/json",
        b"x-service-event: e",
        b"Content-Length: 7",
        b"Connection: close",
    ]
    assert body == b'{"a":1}'


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
HINTS = b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"


@pytest.mark.parametrize(
    ("response", "outcome"),
    [
        (b"HTTP/1.1 204 No Content\r\n\r\n", Outcome(204)),
        (b"HTTP/1.0 200 OK\r\n\r\nuntil the end", Outcome(200, b"until the end")),
        (CHUNKED + b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n", Outcome(200, b"abcde")),
        (CHUNKED + b"zz\r\n", Outcome(200)),
        (b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Created\r\n\r\n", Outcome(201)),
        (HINTS + HINTS + b"HTTP/1.1 200 OK\r\n\r\nk", Outcome(200, b"k")),
        (b"HTTP/1.1 101 Switching\r\n\r\n", Outcome(101)),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 90\r\n\r\ncut", Outcome(200, b"cut")),
    ],
)
def test_every_honest_form_of_answer_is_read(start, response: bytes, outcome: Outcome) -> None:  # type: ignore[no-untyped-def]
    assert post(start(saying(response))) == outcome


@pytest.mark.parametrize(
    "response",
    [
        b"",
        b"HTTP/1.1 ",
        b"SSH-2.0-OpenSSH\r\n",
        b"<html>hello</html>",
        b"HTTP/1.1 abc\r\n\r\n",
        b"HTTP/1.1 99 low\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"x-header: y\r\n" * 200 + b"\r\n",
        b"HTTP/1.1 200 OK\r\nx: " + b"y" * 100_000 + b"\r\n\r\n",
        b"HTTP/1.1 103 Hints\r\n\r\n" * 20 + b"HTTP/1.1 200 OK\r\n\r\n",
    ],
)
def test_what_is_no_answer_is_a_network_failure(start, response: bytes) -> None:  # type: ignore[no-untyped-def]
    outcome = post(start(saying(response)))
    assert outcome.status is None
    assert outcome.failure


def test_a_redirect_is_an_answer_and_is_not_followed(start) -> None:  # type: ignore[no-untyped-def]
    elsewhere = start(saying(b"HTTP/1.1 200 OK\r\n\r\n"))
    location = b"Location: http://127.0.0.1:%d/\r\n" % elsewhere.port
    for status in (b"301", b"302", b"303", b"307", b"308"):
        server = start(saying(b"HTTP/1.1 " + status + b" Moved\r\n" + location + b"\r\n"))
        assert post(server).status == int(status)
    assert elsewhere.requests == []


def drip(data: bytes, pause_s: float = 0.02) -> Serve:
    def serve(connection: socket.socket, request: bytes) -> None:
        for at in range(len(data)):
            connection.sendall(data[at : at + 1])
            time.sleep(pause_s)

    return serve


@pytest.mark.parametrize(
    "response",
    [
        b"HTTP/1.1 200 OK\r\nx-a: " + b"b" * 2000,
        b"HTTP/1.1 200 OK\r\n" + b"a: b\r\n" * 400,
        b"HTTP/1.1 100 Continue\r\n\r\n" * 100,
    ],
)
def test_a_head_that_drips_meets_the_deadline(start, response: bytes) -> None:  # type: ignore[no-untyped-def]
    began = time.monotonic()
    outcome = post(start(drip(response)), timeout_s=0.4)
    assert outcome.failure == "no timely answer while waiting for the response"
    assert time.monotonic() - began < 1.5


def test_a_body_that_drips_meets_the_deadline_and_the_status_stands(start) -> None:  # type: ignore[no-untyped-def]
    server = start(
        lambda connection, request: (
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n"),
            drip(b"x" * 5000)(connection, request),
        )
    )
    began = time.monotonic()
    outcome = post(server, timeout_s=0.4)
    assert outcome.status == 200
    assert 1 <= len(outcome.body) < 100
    assert time.monotonic() - began < 1.5


def test_silence_meets_the_deadline(start) -> None:  # type: ignore[no-untyped-def]
    released = threading.Event()
    server = start(lambda connection, request: released.wait(5))
    began = time.monotonic()
    assert post(server, timeout_s=0.3).status is None
    assert time.monotonic() - began < 1.5
    released.set()


def test_a_server_that_does_not_read_meets_the_deadline() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        # A listener alone: connections queue, and nothing is ever read.
        target = parse_url(f"http://x.example:{listener.getsockname()[1]}/", local_allowed=True)
        request = Request(target, {}, b"x" * 30_000_000)
        began = time.monotonic()
        outcome = ThreadsTransport().send(request, ["127.0.0.1"], Deadline.after(0.3))
        assert outcome.status is None
        assert time.monotonic() - began < 1.5


def test_an_endless_body_is_cut(start) -> None:  # type: ignore[no-untyped-def]
    def pour(connection: socket.socket, request: bytes) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2000000000\r\n\r\n")
        while True:
            connection.sendall(b"x" * 65536)

    outcome = post(start(pour))
    assert outcome == Outcome(200, b"x" * KEPT_BYTES)


def test_a_refused_connection_is_a_network_failure() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    target = parse_url(f"http://x.example:{port}/", local_allowed=True)
    outcome = ThreadsTransport().send(Request(target, {}, b""), ["127.0.0.1"], Deadline.after(2))
    assert outcome == Outcome(failure="ConnectionRefusedError while connecting")
    nothing = ThreadsTransport().send(Request(target, {}, b""), [], Deadline.after(2))
    assert nothing.status is None


def test_the_next_address_is_tried_when_one_refuses(start) -> None:  # type: ignore[no-untyped-def]
    server = start(saying(b"HTTP/1.1 200 OK\r\n\r\n"))
    assert post(server, addresses=("127.0.0.2", "::1", "127.0.0.1")).status == 200


def test_a_deadline_that_has_passed_connects_to_nothing(start) -> None:  # type: ignore[no-untyped-def]
    server = start(saying(b"HTTP/1.1 200 OK\r\n\r\n"))
    assert post(server, timeout_s=0).status is None
    assert server.requests == []


def test_proxy_variables_are_not_read(start, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    proxy = start(saying(b"HTTP/1.1 502 Proxy\r\n\r\n"))
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
    assert post(start(saying(b"HTTP/1.1 200 OK\r\n\r\n"))).status == 200
    assert proxy.requests == []


def test_a_line_break_in_a_header_sends_nothing(start) -> None:  # type: ignore[no-untyped-def]
    server = start(saying(b"HTTP/1.1 200 OK\r\n\r\n"))
    target = parse_url(f"http://x.example:{server.port}/", local_allowed=True)
    request = Request(target, {"x": "a\r\nHost: b"}, b"")
    with pytest.raises(ValueError, match="line break"):
        ThreadsTransport().send(request, ["127.0.0.1"], Deadline.after(2))
    assert server.requests == []


# TLS.


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A self-signed certificate for NAME, with its key, in one file."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl is not installed, and no certificate can be made without it")
    path = tmp_path_factory.mktemp("tls") / "both.pem"
    key, cert = path.with_name("key.pem"), path.with_name("cert.pem")
    subprocess.run(
        [openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj",
         f"/CN={NAME}", "-addext", f"subjectAltName=DNS:{NAME}", "-keyout", key, "-out", cert],
        check=True, capture_output=True,
    )  # fmt: skip
    path.write_bytes(key.read_bytes() + cert.read_bytes())
    return path


def server_tls(certificate: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context


def trusting(certificate: Path) -> ssl.SSLContext:
    return ssl.create_default_context(cafile=str(certificate))


def test_tls_is_verified_against_the_name_and_not_the_address(start, certificate: Path) -> None:  # type: ignore[no-untyped-def]
    server = start(saying(b"HTTP/1.1 200 OK\r\n\r\n"), server_tls(certificate))
    assert post(server, scheme="https", tls=trusting(certificate)).status == 200


def test_a_certificate_for_another_name_is_refused(start, certificate: Path) -> None:  # type: ignore[no-untyped-def]
    server = start(saying(b"HTTP/1.1 200 OK\r\n\r\n"), server_tls(certificate))
    outcome = post(server, scheme="https", name="other.example", tls=trusting(certificate))
    assert outcome == Outcome(failure="the TLS certificate was refused")
    assert server.requests == []


def test_a_certificate_of_an_unknown_authority_is_refused(start, certificate: Path) -> None:  # type: ignore[no-untyped-def]
    server = start(saying(b"HTTP/1.1 200 OK\r\n\r\n"), server_tls(certificate))
    assert post(server, scheme="https").failure == "the TLS certificate was refused"
    assert server.requests == []


def test_a_server_that_speaks_no_tls_is_a_network_failure(start) -> None:  # type: ignore[no-untyped-def]
    server = start(saying(b"HTTP/1.1 200 OK\r\n\r\n"))
    assert post(server, scheme="https", timeout_s=0.5).status is None


def test_a_context_that_does_not_verify_is_not_taken() -> None:
    context = ssl.create_default_context()
    context.check_hostname = False
    with pytest.raises(ValueError, match="verify"):
        ThreadsTransport(context)
