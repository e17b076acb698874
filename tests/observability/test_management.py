"""The operators' listener, over real sockets of this machine."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from http.client import HTTPConnection, HTTPResponse

import pytest

from payments_core.errors import Unavailable
from payments_core_http.observability import management as management_module
from payments_core_http.observability.bounded_probe import BoundedProbe
from payments_core_http.observability.management import MAX_CONNECTIONS, ManagementServer
from payments_core_http.observability.metrics import Metrics


class Readiness:
    """What the listener asks; it does what a test wants."""

    def __init__(self) -> None:
        self.error: Exception | None = None
        self.hangs = threading.Event()
        self.hangs.set()
        self.asked = threading.Event()

    def __call__(self) -> None:
        self.asked.set()
        self.hangs.wait(30)
        if self.error is not None:
            raise self.error


@pytest.fixture
def readiness() -> Iterator[Readiness]:
    made = Readiness()
    yield made
    made.hangs.set()


@pytest.fixture
def management(readiness: Readiness) -> Iterator[ManagementServer]:
    made = ManagementServer("127.0.0.1", 0, Metrics("1.2.3", "sandbox"), readiness)
    made.start()
    yield made
    made.stop()


def connected(management: ManagementServer) -> socket.socket:
    return socket.create_connection(("127.0.0.1", management.port), timeout=10)


def ask(
    management: ManagementServer, path: str, method: str = "GET"
) -> tuple[int, str, HTTPResponse]:
    with closing(HTTPConnection("127.0.0.1", management.port, timeout=10)) as connection:
        connection.request(method, path)
        response = connection.getresponse()
        return response.status, response.read().decode(), response


def test_metrics_are_answered_in_prometheus_format(management: ManagementServer) -> None:
    status, body, response = ask(management, "/metrics")
    assert status == 200
    assert str(response.headers["Content-Type"]).startswith("text/plain; version=")
    assert 'payments_build_info{mode="sandbox",version="1.2.3"} 1.0' in body


def test_the_process_lives_and_is_ready(management: ManagementServer) -> None:
    assert ask(management, "/healthz")[:2] == (200, "ok\n")
    assert ask(management, "/readyz?verbose=1")[:2] == (200, "ready\n")
    assert ask(management, "/readyz", "HEAD")[:2] == (200, "")


@pytest.mark.parametrize("error", [Unavailable(), RuntimeError("sk_sandbox_x")])
def test_a_process_that_cannot_serve_is_not_ready(
    management: ManagementServer, readiness: Readiness, error: Exception
) -> None:
    readiness.error = error
    assert ask(management, "/readyz")[:2] == (503, "not ready\n")
    assert ask(management, "/healthz")[0] == 200


def test_a_process_that_is_stopping_is_not_ready(readiness: Readiness) -> None:
    asked: list[bool] = []
    management = ManagementServer(
        "127.0.0.1", 0, Metrics("1", "sandbox"), readiness, is_stopping=lambda: bool(asked)
    )
    management.start()
    assert ask(management, "/readyz")[:2] == (200, "ready\n")
    asked.append(True)
    assert ask(management, "/readyz")[:2] == (503, "stopping\n")
    assert ask(management, "/healthz")[0] == ask(management, "/metrics")[0] == 200
    management.stop()


def test_a_process_that_does_not_know_is_not_ready(
    management: ManagementServer, readiness: Readiness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(management_module, "READY_TIMEOUT_S", 0.05)
    readiness.hangs.clear()
    assert ask(management, "/readyz")[0] == 503
    assert ask(management, "/healthz")[0] == 200


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/", 404), ("GET", "/v2/payments", 404), ("POST", "/metrics", 501)],
)
def test_nothing_else_is_answered(
    management: ManagementServer, method: str, path: str, status: int
) -> None:
    answered, body, response = ask(management, path, method)
    assert (answered, body) == (status, f"{status}\n")
    assert response.headers["Server"].strip() == "payments"


def test_it_ends_though_somebody_holds_a_connection(management: ManagementServer) -> None:
    with socket.create_connection(("127.0.0.1", management.port)) as idle:
        idle.sendall(b"GET /metrics HTTP/1.1\r\n")
        assert ask(management, "/healthz")[0] == 200
        began = time.monotonic()
        management.stop()
        assert time.monotonic() - began < 3
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", management.port), timeout=5).close()
    management.stop()


def test_it_may_end_before_it_began(readiness: Readiness) -> None:
    ManagementServer("127.0.0.1", 0, Metrics("1", "sandbox"), readiness).stop()


def test_who_has_not_sent_a_whole_request_gives_way(management: ManagementServer) -> None:
    with ExitStack() as open_:
        slow = [open_.enter_context(connected(management)) for _ in range(MAX_CONNECTIONS)]
        for one in slow:
            one.sendall(b"GET /heal")
        for asked in range(1, MAX_CONNECTIONS + 3):  # and so again and again
            assert ask(management, "/healthz")[:2] == (200, "ok\n")
            if asked == 1:
                assert slow[0].recv(1) == b""
        slow[-1].sendall(b"thz HTTP/1.0\r\n\r\n")
        assert slow[-1].recv(100).startswith(b"HTTP/1.0 200")


def test_who_is_being_answered_gives_way_to_nobody(
    management: ManagementServer, readiness: Readiness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(management_module, "MAX_CONNECTIONS", 1)
    readiness.hangs.clear()
    with connected(management) as first:
        first.sendall(b"GET /readyz HTTP/1.0\r\n\r\n")
        assert readiness.asked.wait(10)
        with connected(management) as one_more:
            assert one_more.recv(1) == b""
        readiness.hangs.set()
        assert first.recv(100).startswith(b"HTTP/1.0 200")


def test_a_connection_ends_though_its_client_sends_byte_by_byte(
    readiness: Readiness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(management_module, "CONNECTION_TIMEOUT_S", 0.3)
    management = ManagementServer("127.0.0.1", 0, Metrics("1", "sandbox"), readiness)
    management.start()
    began = time.monotonic()
    with connected(management) as slow:
        slow.settimeout(0.02)
        ended = False
        while not ended and time.monotonic() - began < 10:
            with suppress(TimeoutError):
                slow.sendall(b"G")
                ended = slow.recv(1) == b""
    assert 0.25 < time.monotonic() - began < 3
    assert ask(management, "/healthz")[0] == 200
    management.stop()


def test_a_port_that_is_taken_is_refused(
    management: ManagementServer, readiness: Readiness
) -> None:
    with pytest.raises(OSError, match="in use"):
        ManagementServer("127.0.0.1", management.port, Metrics("1", "sandbox"), readiness)


def test_it_listens_on_ipv6_too(readiness: Readiness) -> None:
    try:
        management = ManagementServer("::1", 0, Metrics("1", "sandbox"), readiness)
    except OSError:
        pytest.skip("this machine has no IPv6")
    management.start()
    try:
        assert management.url == f"http://[::1]:{management.port}"
        with socket.create_connection(("::1", management.port), timeout=10) as connection:
            connection.sendall(b"GET /healthz HTTP/1.0\r\n\r\n")
            assert connection.recv(100).startswith(b"HTTP/1.0 200")
    finally:
        management.stop()


def test_a_thread_that_could_not_be_begun_is_asked_for_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As where the system has no thread to give for a while."""
    patience = BoundedProbe(lambda: "ready", name="test")

    def fails(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", fails)
    with pytest.raises(RuntimeError):
        patience.ask(1)
    monkeypatch.undo()
    assert patience.ask(10) == "ready"
