"""The application on a real socket."""

from __future__ import annotations

import errno
import http.client
import json
import selectors
import socket
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from payments_core.engine.identifiers import is_identifier
from payments_core_http.server.connection import Connection
from payments_core_http.server.connection_server import ConnectionServer
from payments_core_http.server.hosting import MAX_HEADER_BYTES
from payments_core_http.server.server import SWITCH_INTERVAL_S, Server
from payments_core_http.serving import build_server
from tests.http.api_harness import ApiHarness, real_time


@pytest.fixture
def served() -> Iterator[tuple[ApiHarness, Server]]:
    before = sys.getswitchinterval()
    api = ApiHarness(real_time())
    with build_server(api.app, api.service.parts.ports.identifiers, threads=4) as server:
        yield api, server
    sys.setswitchinterval(before)


def ask(
    server: Server, method: str, path: str, body: bytes | None = None, **headers: str
) -> tuple[http.client.HTTPResponse, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    try:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, body=body, headers=named)
        response = connection.getresponse()
        return response, response.read()
    finally:
        connection.close()


def exchanged(server: Server, raw: bytes) -> tuple[int, dict[str, str], bytes]:
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as client:
        client.sendall(raw)
        received = b""
        while piece := client.recv(65_536):
            received += piece
    head, _, body = received.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {n.lower(): v.strip() for n, _, v in (line.partition(":") for line in lines)}
    return int(first.split()[1]), headers, body


def test_port_0_is_reported_and_answers(served: tuple[ApiHarness, Server]) -> None:
    api, server = served
    assert server.port > 0 and server.url == f"http://127.0.0.1:{server.port}"
    response, body = ask(server, "GET", "/v2/partners/config", Authorization=api.basic())
    assert response.status == 200 and json.loads(body)["appId"] == api.app_row.id
    assert "server" not in response.headers


def test_an_encoded_slash_in_a_path_is_404(served: tuple[ApiHarness, Server]) -> None:
    api, server = served
    for path in ("/v2%2Fpartners/config", "/v2/partners%2fconfig", "/healthz%2F"):
        response, body = ask(server, "GET", path, Authorization=api.basic())
        assert (response.status, json.loads(body)["error"]["code"]) == (404, "route_not_found")


def test_slashes_before_a_path_are_part_of_it(served: tuple[ApiHarness, Server]) -> None:
    api, server = served
    for path, status in (("/v2/accounts", 200), ("//v2/accounts", 404), ("///v2/accounts", 404)):
        response, body = ask(server, "GET", path, Authorization=api.basic())
        assert response.status == status, body


def test_a_body_goes_in_and_comes_back(served: tuple[ApiHarness, Server]) -> None:
    api, server = served
    headers = {
        "Authorization": api.basic(), "Content_Type": "application/json", "Idempotency_Key": "k",
    }  # fmt: skip
    response, body = ask(server, "POST", "/v2/things", b'{"name": "a"}', **headers)
    assert (response.status, json.loads(body)["name"]) == (201, "a")


def test_a_chunked_body_goes_in(served: tuple[ApiHarness, Server]) -> None:
    api, server = served
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    for key, size, status in (("small", 1, 201), ("large", 70_000, 413)):
        headers = {
            "Authorization": api.basic(), "Content-Type": "application/json",
            "Idempotency-Key": key,
        }  # fmt: skip
        pieces = iter([b'{"name":', b" " * size, b'"a"}'])
        connection.request("POST", "/v2/things", pieces, headers, encode_chunked=True)
        response = connection.getresponse()
        assert (response.status, bool(response.read())) == (status, True)
    connection.close()


def test_head_has_no_body(served: tuple[ApiHarness, Server]) -> None:
    _, server = served
    response, body = ask(server, "HEAD", "/healthz")
    assert (response.status, body) == (200, b"")


def test_65_kib_are_answered_by_the_application(served: tuple[ApiHarness, Server]) -> None:
    api, server = served
    headers = {
        "Authorization": api.basic(), "Content_Type": "application/json", "Idempotency_Key": "k",
    }  # fmt: skip
    response, body = ask(server, "POST", "/v2/things", b" " * 66_560, **headers)
    assert response.status == 413
    assert json.loads(body)["error"]["code"] == "payload_too_large"


@pytest.mark.parametrize(
    ("raw", "status", "code"),
    [
        (b"GET / HTTP/1.1\r\nbad header\r\n\r\n", 400, "malformed_request"),
        (b"GET / HTTP/1.1\r\nA: " + b"x" * MAX_HEADER_BYTES, 431, "headers_too_large"),
        (b"POST / HTTP/1.1\r\nHost:\r\nContent-Length: 9999999\r\n\r\n", 413, "payload_too_large"),
        (
            b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: gzip\r\n\r\n",
            501,
            "transfer_encoding_not_supported",
        ),
    ],
)
def test_what_the_server_refuses_itself_looks_like_ours(
    served: tuple[ApiHarness, Server], raw: bytes, status: int, code: str
) -> None:
    seen, headers, body = exchanged(served[1], raw)
    assert (seen, json.loads(body)["error"]["code"]) == (status, code)
    assert is_identifier(headers["x-request-id"], "req")
    assert headers["service-version"] == "2026-09-09"


def test_threads_switch_often(served: tuple[ApiHarness, Server]) -> None:
    ask(served[1], "GET", "/healthz")
    assert sys.getswitchinterval() == pytest.approx(SWITCH_INTERVAL_S)


def hold_writes(api: ApiHarness) -> tuple[dict[str, str], threading.Event, threading.Event]:
    """Let writes wait: their headers, whether one is inside, and what lets it go on."""
    inside, go = threading.Event(), threading.Event()

    def wait() -> None:
        inside.set()
        assert go.wait(10)

    api.service.things.before = wait
    headers = {
        "Authorization": api.basic(), "Content_Type": "application/json", "Idempotency_Key": "k",
    }  # fmt: skip
    return headers, inside, go


def test_what_was_begun_is_finished_before_the_end(served: tuple[ApiHarness, Server]) -> None:
    api, server = served
    headers, inside, go = hold_writes(api)
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(ask, server, "POST", "/v2/things", b'{"name": "a"}', **headers)
        assert inside.wait(10)
        server.stop()
        deadline = time.monotonic() + 10
        while True:  # until the listening socket is gone
            try:
                socket.create_connection(("127.0.0.1", server.port), timeout=10).close()
            except ConnectionRefusedError:
                break
            except ConnectionResetError:  # it was still in the queue of the socket that closed
                continue
            assert time.monotonic() < deadline
        go.set()
        response, body = answer.result(10)
    assert response.status == 201 and json.loads(body)["name"] == "a"


def test_liveness_is_answered_while_every_thread_is_busy() -> None:
    api = ApiHarness(real_time())
    headers, inside, go = hold_writes(api)
    with (
        build_server(api.app, api.service.parts.ports.identifiers, threads=1) as server,
        ThreadPoolExecutor(2) as pool,
    ):
        busy = pool.submit(ask, server, "POST", "/v2/things", b'{"name": "a"}', **headers)
        assert inside.wait(10)
        queued = pool.submit(ask, server, "GET", "/v2/things", Authorization=api.basic())
        assert ask(server, "GET", "/healthz")[0].status == 200
        assert not (busy.done() or queued.done())
        go.set()
        assert busy.result(10)[0].status == 201


def test_a_taken_port_is_an_os_error(served: tuple[ApiHarness, Server]) -> None:
    api, server = served
    with pytest.raises(OSError):
        build_server(api.app, api.service.parts.ports.identifiers, port=server.port)


def closed_at_once(server: Server) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", server.port), timeout=10) as client:
            return client.recv(1) == b""
    except ConnectionResetError:
        return True


class FullSystem:
    """A system that can wait for no socket more, so many times; those it knows may come back."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.times = 0
        able = selectors.DefaultSelector.register
        known: set[object] = set()

        def register(selector: Any, number: int, events: int, data: object = None) -> Any:
            if self.times and data not in known:
                self.times -= 1
                raise OSError(errno.ENOSPC, "no space")
            known.add(data)
            return able(selector, number, events, data)

        patch.setattr(selectors.DefaultSelector, "register", register)


def test_a_connection_that_the_system_cannot_wait_for_ends_alone(
    served: tuple[ApiHarness, Server],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    _, server = served
    system = FullSystem(monkeypatch)
    assert ask(server, "GET", "/healthz")[0].status == 200
    for _ in range(3):
        system.times = 1
        assert closed_at_once(server)
        assert ask(server, "GET", "/healthz")[0].status == 200
    assert caplog.text.count("a connection could not be opened") == 1


def test_a_connection_that_cannot_be_made_ends_alone(
    served: tuple[ApiHarness, Server],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    _, server = served
    with monkeypatch.context() as patch:
        patch.setattr(Connection, "__init__", lambda *args, **more: 1 // 0)
        assert closed_at_once(server) and closed_at_once(server)
    assert ask(server, "GET", "/healthz")[0].status == 200
    assert caplog.text.count("a connection could not be opened (ZeroDivisionError") == 1


def test_a_server_that_cannot_listen_yet_tries_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    api = ApiHarness(real_time())
    server = build_server(api.app, api.service.parts.ports.identifiers, threads=1)
    FullSystem(monkeypatch).times = 1
    with server:
        assert ask(server, "GET", "/healthz")[0].status == 200
    assert "new connections are not accepted for now" in caplog.text


def test_a_fault_in_letting_in_does_not_end_the_listening(
    served: tuple[ApiHarness, Server], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, server = served
    with monkeypatch.context() as patch:
        tried = threading.Event()
        patch.setattr(ConnectionServer, "accept", lambda listener: tried.set() or 1 // 0)
        with socket.create_connection(("127.0.0.1", server.port), timeout=10):
            assert tried.wait(10)
    assert ask(server, "GET", "/healthz")[0].status == 200


def test_an_answer_without_a_body_does_not_end_its_connection(
    served: tuple[ApiHarness, Server],
) -> None:
    _, server = served
    with socket.create_connection(("127.0.0.1", server.port), timeout=10) as client:
        client.sendall(b"OPTIONS /v2/partners/config HTTP/1.1\r\nHost: h\r\n\r\n")
        head = client.recv(65_536).decode("latin-1").lower()
        assert head.startswith("http/1.1 204") and head.endswith("\r\n\r\n")
        assert not any(name in head for name in ("connection:", "content-length:", "transfer-"))
        client.sendall(b"GET /healthz HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
        assert client.recv(65_536).startswith(b"HTTP/1.1 200")
