"""Whether a body was read to its end, and what a node's answer must have to count as an answer."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from payments_core.chains.http.client import HttpClient, RequestLimits, ResponseTooLarge
from payments_core.chains.port import ChainUnavailable
from payments_core.http.deadline import Deadline
from payments_core.http.response import ResponseReader, read_response

OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
LENGTH = OK + b"Content-Length: 4\r\n\r\n"
LIMITS = RequestLimits(connect_timeout_s=1, total_timeout_s=1, max_response_bytes=100)


def read(response: bytes, limit_bytes: int = 100) -> tuple[bytes, bool, bool]:
    """The body, whether it is complete, and whether the connection is clean."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(response)
        theirs.shutdown(socket.SHUT_WR)
        answer, clean = read_response(ResponseReader(ours, Deadline.after(5)), limit_bytes)
        return answer.body, answer.complete, clean


@pytest.mark.parametrize(
    ("response", "clean"),
    [
        (LENGTH + b"true", True),
        (CHUNKED + b"4\r\ntrue\r\n0\r\n\r\n", True),
        (CHUNKED + b"4;x=y\r\ntrue\r\n0\r\n\r\n", False),
        (CHUNKED + b"4\r\ntrue\r\n0\r\nx-trailer: 1\r\n\r\n", False),
        (OK + b"\r\ntrue", False),
        (b"HTTP/1.0 200 OK\r\n\r\ntrue", False),
        (LENGTH + b"true, and more", False),
    ],
)
def test_a_body_is_complete_where_its_end_was_reached(response: bytes, clean: bool) -> None:
    assert read(response) == (b"true", True, clean)


@pytest.mark.parametrize(
    "response",
    [
        LENGTH + b"tru",
        CHUNKED + b"4\r\ntru",
        CHUNKED + b"4\r\ntrue\r\n",
        CHUNKED + b"4\r\ntrueX\n0\r\n\r\n",
        OK + b"Content-Length: 4\r\nContent-Length: 5\r\n\r\ntrue",
        OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n4\r\ntrue\r\n0\r\n\r\n",
    ],
)
def test_a_body_that_breaks_off_or_has_no_clear_end_is_not_complete(response: bytes) -> None:
    _, complete, clean = read(response)
    assert (complete, clean) == (False, False)


@pytest.mark.parametrize("response", [LENGTH + b"true", OK + b"\r\ntrue"])
def test_a_body_beyond_the_limit_is_not_complete(response: bytes) -> None:
    assert read(response, limit_bytes=3) == (b"tru", False, False)


@contextmanager
def serving(*responses: bytes) -> Iterator[tuple[str, list[bytes]]]:
    """A server that answers a response to each connection and closes it, and what it was sent."""
    asked: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            for response in responses:
                connection, _ = server.accept()
                with connection:
                    asked.append(connection.recv(65_536))
                    connection.sendall(response)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}/base?key=k", asked


def send(url: str, path: str = "/") -> tuple[int, bytes]:
    wire = HttpClient(url, LIMITS)
    try:
        return wire.send("POST", time.monotonic() + 2, path, b"[]")
    finally:
        wire.close()


@pytest.mark.parametrize(
    "response",
    [
        LENGTH + b"true",
        OK + b"\r\ntrue",
        CHUNKED + b"4\r\ntrue\r\n0\r\nx-trailer: 1\r\n\r\n",
        b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + LENGTH + b"true",
    ],
)
def test_a_node_may_end_its_answer_in_any_way_that_http_has(response: bytes) -> None:
    with serving(response) as (url, _):
        assert send(url) == (200, b"true")


@pytest.mark.parametrize("response", [b"", LENGTH + b"tru", CHUNKED + b"4\r\ntrue\r\n", b"no\r\n"])
def test_an_answer_that_breaks_off_is_asked_for_once_more(response: bytes) -> None:
    with serving(response, LENGTH + b"true") as (url, asked):
        assert send(url) == (200, b"true")
        assert len(asked) == 2
    refused = pytest.raises(ChainUnavailable, match="incomplete")
    with serving(response, response) as (url, _), refused:
        send(url)


def test_an_announced_length_beyond_the_limit_is_not_waited_for() -> None:
    with (
        serving(OK + b"Content-Length: 101\r\n\r\n") as (url, asked),
        pytest.raises(ResponseTooLarge),
    ):
        send(url)
    assert len(asked) == 1


def test_the_request_is_plain_http_and_names_its_client() -> None:
    with serving(LENGTH + b"true") as (url, asked):
        send(url, "/view/0x1::coin::Coin<a b>")
    head, _, body = asked[0].partition(b"\r\n\r\n")
    first, *headers = head.decode().split("\r\n")
    assert first == "POST /base/view/0x1::coin::Coin%3Ca%20b%3E?key=k HTTP/1.1"
    assert f"host: {url.removeprefix('http://').partition('/')[0]}" in headers
    assert {"accept-encoding: identity", "user-agent: payments-core", "content-length: 2"} <= {
        *headers
    }
    assert body == b"[]"
