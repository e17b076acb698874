"""Bodies without a stated length, on the servers and bridges that embedders use: a part of a
Payment is refunded, or nothing; never all of it because the body was lost."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.http.wire.other_servers import Running, run_server

pytestmark = pytest.mark.slow

BODY = b'{"amount": "1.00"}'
CHUNKED = "Transfer-Encoding: chunked"

HTTP1 = {  # what answers a chunked body: read, or refused where the server does not decode chunks
    "gunicorn": 201,
    "granian": 201,
    "asgiref": 201,
    "uwsgi": 411,
    "uwsgi-router": 411,
    "cheroot": 201,
    "werkzeug": 201,
}
HTTP2 = ("granian", "asgiref")


@pytest.fixture(scope="module", params=HTTP1)
def served(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, Running]]:
    with run_server(request.param, tmp_path_factory.mktemp("served")) as running:
        yield request.param, running


def test_a_body_of_unknown_length_is_read_or_refused(served: tuple[str, Running]) -> None:
    name, server = served
    payment = server.facts["payments"][0]
    chunk = f"{len(BODY):x}\r\n".encode() + BODY + b"\r\n0\r\n\r\n"
    with start_refund(server, payment, CHUNKED, chunk) as client:
        status = int(client.makefile("rb").readline().split()[1])
    assert status == HTTP1[name]
    assert server.list_refunds(payment) == (["1.00"] if status == 201 else [])


def test_no_body_is_no_body(served: tuple[str, Running]) -> None:
    _, server = served
    payment = server.facts["payments"][1]
    status, body = server.ask("POST", f"/v2/payments/{payment}/refunds", Idempotency_Key="whole")
    assert (status, body.get("amount")) == (201, "25.00")


@pytest.mark.parametrize(
    ("framing", "sent"),
    [
        (CHUNKED, b""),
        (CHUNKED, b"12\r\n" + BODY[:9]),
        (f"Content-Length: {len(BODY)}", b""),
        (f"Content-Length: {len(BODY)}", BODY[:9]),
    ],
    ids=["before a chunk", "within a chunk", "before the body", "within the body"],
)
def test_a_client_that_vanishes_refunds_nothing_and_is_no_error(
    served: tuple[str, Running], framing: str, sent: bytes
) -> None:
    name, server = served
    payment = server.facts["payments"][2]
    before = len(server.read_log())
    start_refund(server, payment, framing, sent, key="vanishes").close()
    ended = "non-HTTP-request message" if name == "asgiref" else "payments_core_http.access"
    wait_until(lambda: ended in server.read_log()[before:])
    assert " failed\n" not in server.read_log()[before:]  # what an internal error logs
    assert server.list_refunds(payment) == []


@pytest.mark.parametrize("name", HTTP2)
def test_http_2_without_a_content_length(name: str, tmp_path: Path) -> None:
    curl = shutil.which("curl")
    if curl is None or b"HTTP2" not in subprocess.check_output([curl, "--version"]):
        pytest.skip("there is no curl with HTTP/2")
    with run_server(name, tmp_path) as server:
        read, refused, unlike, *_ = server.facts["payments"]
        answers = {}
        for payment, options, body in (
            (read, ["-H", "Content-Type: application/json", "-T", "-"], BODY),
            (refused, ["-H", "Content-Type: application/json", "-T", "-"], b""),
            (unlike, ["-T", "-"], BODY),
        ):
            answers[payment] = ask_http2(curl, server, payment, options, body)
        assert answers[read] == (201, "1.00")
        assert answers[refused] == (411, "length_required")
        assert answers[unlike] == (415, "unsupported_media_type")
        assert server.list_refunds(read) == ["1.00"]
        assert server.list_refunds(refused) == server.list_refunds(unlike) == []


def ask_http2(
    curl: str, server: Running, payment: str, options: list[str], body: bytes
) -> tuple[int, str]:
    """The status, and the amount or the error's code, that answer a refund over HTTP/2."""
    url = f"http://127.0.0.1:{server.port}/v2/payments/{payment}/refunds"
    given = ["-s", "-m", "20", "--http2-prior-knowledge", "-X", "POST", "-w", "\n%{http_code}"]
    headers = ["-u", server.facts["credentials"], "-H", "Idempotency-Key: http2"]
    done = subprocess.run([curl, *given, *headers, *options, url], input=body, capture_output=True)
    text, _, status = done.stdout.decode().rpartition("\n")
    answer = json.loads(text)
    return int(status), answer.get("amount") or answer["error"]["code"]


def start_refund(
    server: Running, payment: str, framing: str, sent: bytes, key: str = "part"
) -> socket.socket:
    """The connection of a refund that has been sent, maybe not to its end."""
    head = (
        f"POST /v2/payments/{payment}/refunds HTTP/1.1\r\nHost: localhost\r\n"
        f"Authorization: {server.authorization}\r\nContent-Type: application/json\r\n"
        f"Idempotency-Key: {key}\r\n{framing}\r\n\r\n"
    )
    client = server.connect()
    client.sendall(head.encode() + sent)
    return client


def wait_until(is_true: Callable[[], bool], limit_s: float = 20) -> None:
    deadline = time.monotonic() + limit_s
    while not is_true():
        assert time.monotonic() < deadline
        time.sleep(0.02)
