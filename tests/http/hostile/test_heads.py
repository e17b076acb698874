"""Heads that no honest client sends: each is refused at once, in our own shape."""

from __future__ import annotations

import time

import pytest

from tests.http.hostile.target import Target, require_own_shape

AT_ONCE_S = 2.0
"""The worst of these kept a backtracking reader busy for 23 s; the rest is for a busy machine."""

GET = b"GET /readyz HTTP/1.1\r\nHost: h\r\n"
POST = b"POST /v2/things HTTP/1.1\r\nHost: h\r\n"
TLS_HELLO = bytes.fromhex("16030100c8010000c40303") + bytes(190)
CHUNKED = b"0\r\n\r\n"

TOO_LARGE = {
    "headers of 1 MB": GET + b"".join(b"X-%d: %s\r\n" % (n, b"x" * 1_000) for n in range(1_000)),
    "10,000 headers": GET + b"A: b\r\n" * 10_000 + b"\r\n",
    "a header line without end": GET + b"A: " + b"x" * 70_000,
    "a header name without end": GET + b"A" * 70_000,
    "a URL of 1 MB": b"GET /" + b"x" * 1_000_000 + b" HTTP/1.1\r\n\r\n",
    "a query of 1 MB": b"GET /readyz?" + b"x" * 1_000_000 + b" HTTP/1.1\r\n\r\n",
    "a method of 1 MB": b"G" * 1_000_000 + b" / HTTP/1.1\r\n\r\n",
}

MALFORMED = {
    "garbage": b"\x01\x02\x03 nothing\r\n\r\n",
    "TLS on the plain port": TLS_HELLO,
    "a prompt": b"hello\r\n\r\n",
    "no target": b"GET HTTP/1.1\r\n\r\n",
    "two spaces": b"GET  / HTTP/1.1\r\n\r\n",
    "a tab": b"GET\t/ HTTP/1.1\r\n\r\n",
    "words after the version": b"GET / HTTP/1.1 now\r\n\r\n",
    "a lowercase method": b"get / HTTP/1.1\r\n\r\n",
    "a space before the method": b" GET / HTTP/1.1\r\n\r\n",
    "nothing but a space": b" \r\n\r\n",
    "an authority that is not valid": b"GET http://[ HTTP/1.1\r\n\r\n",
    "NUL in the target": b"GET /\x00 HTTP/1.1\r\n\r\n",
    "NUL in the method": b"G\x00T / HTTP/1.1\r\n\r\n",
    "NUL in a header": GET + b"A: \x00\r\n\r\n",
    "NUL in a header's name": GET + b"A\x00: b\r\n\r\n",
    "a carriage return in a header": GET + b"A: b\rC: d\r\n\r\n",
    "a line feed in a header": GET + b"A: b\nC: d\r\n\r\n",
    "a folded header": GET + b"A: b\r\n c\r\n\r\n",
    "a folded first header": b"GET / HTTP/1.1\r\n A: b\r\n\r\n",
    "a space before the colon": GET + b"A : b\r\n\r\n",
    "a header without a name": GET + b": b\r\n\r\n",
    "a header without a colon": GET + b"A\r\n\r\n",
    "no host": b"GET / HTTP/1.1\r\n\r\n",
    "two hosts": GET + b"Host: i\r\n\r\n",
    "HTTP/0.9": b"GET /readyz\r\n\r\n",
    "HTTP/1.2": b"GET / HTTP/1.2\r\n\r\n",
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "HTTP/11": b"GET / HTTP/11\r\n\r\n",
    "two lengths that agree": POST + b"Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
    "two lengths that differ": POST + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
    "two lengths in a line": POST + b"Content-Length: 5, 5\r\n\r\nhello",
    "a negative length": POST + b"Content-Length: -1\r\n\r\n",
    "a length with a plus": POST + b"Content-Length: +5\r\n\r\nhello",
    "a length in hexadecimal": POST + b"Content-Length: 0x5\r\n\r\nhello",
    "a length in other digits": POST + "Content-Length: ٥\r\n\r\nhello".encode(),
    "no length": POST + b"Content-Length: \r\n\r\n",
    "a length of 5,000 digits": POST + b"Content-Length: " + b"9" * 5_000 + b"\r\n\r\n",
    "a folded length": POST + b"Content-Length: 5\r\n 0\r\n\r\nhello",
    "a length and chunks": POST
    + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n"
    + CHUNKED,
    "chunks and a length": POST
    + b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n"
    + CHUNKED,
    "chunks twice": POST + b"Transfer-Encoding: chunked, chunked\r\n\r\n" + CHUNKED,
    "chunks and an empty coding": POST + b"Transfer-Encoding: chunked,\r\n\r\n" + CHUNKED,
    "an empty coding": POST + b"Transfer-Encoding:\r\n\r\n" + CHUNKED,
    "a vertical tab in the coding": POST + b"Transfer-Encoding: \x0bchunked\r\n\r\n" + CHUNKED,
    "chunks in HTTP/1.0": b"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n" + CHUNKED,
}

# What a reader that backtracks reads again and again.
SLOW_TO_READ = {
    "an authority of digits": b"GET a://" + b"1" * 16_000 + b" \r\n\r\n",
    "an authority of letters": b"GET a://" + b"a" * 16_000 + b" \r\n\r\n",
    "schemes upon schemes": b"GET " + b"a://" * 4_000 + b" \r\n\r\n",
    "spaces, and a byte that ends them": GET + b"A:" + b" " * 16_000 + b"\x00\r\n\r\n",
    "words, and a byte that ends them": GET + b"A:" + b"a " * 8_000 + b"\x00\r\n\r\n",
}


@pytest.mark.parametrize("raw", TOO_LARGE.values(), ids=TOO_LARGE)
def test_a_head_that_is_too_large_is_refused(target: Target, raw: bytes) -> None:
    refused(target, raw, 431, "headers_too_large")


@pytest.mark.parametrize("raw", MALFORMED.values(), ids=MALFORMED)
def test_a_head_that_can_be_misread_is_refused(target: Target, raw: bytes) -> None:
    refused(target, raw, 400, "malformed_request")


@pytest.mark.parametrize("raw", SLOW_TO_READ.values(), ids=SLOW_TO_READ)
def test_a_head_that_is_slow_to_read_is_refused_as_fast(target: Target, raw: bytes) -> None:
    refused(target, raw, 400, "malformed_request")


def test_a_head_that_is_slow_to_read_though_it_is_one_is_read_as_fast(target: Target) -> None:
    began = time.monotonic()
    [answer] = target.tell(GET + b"Connection: close\r\nA:" + b" " * 16_000 + b"x\r\n\r\n")
    assert (answer.status, time.monotonic() - began < AT_ONCE_S) == (200, True)


@pytest.mark.parametrize(
    "coding", ["gzip", "chunked, gzip", "gzip, chunked", "identity", "xchunked"]
)
def test_a_coding_that_is_not_known_is_refused(target: Target, coding: str) -> None:
    raw = POST + f"Transfer-Encoding: {coding}\r\n\r\n".encode() + CHUNKED
    refused(target, raw, 501, "transfer_encoding_not_supported")


def test_blank_lines_before_a_request_are_passed_over(target: Target) -> None:
    [answer] = target.tell(b"\r\n" * 100_000, GET + b"Connection: close\r\n\r\n")
    assert answer.status == 200


def test_http_1_0_may_keep_its_connection(target: Target) -> None:
    kept = b"GET /readyz HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"
    seen = target.tell(kept, kept, b"GET /readyz HTTP/1.0\r\n\r\n")
    assert [answer.status for answer in seen] == [200, 200, 200]
    assert [answer.headers.get("connection") for answer in seen] == [
        "Keep-Alive", "Keep-Alive", "close",
    ]  # fmt: skip


def refused(target: Target, raw: bytes, status: int, code: str) -> None:
    """One answer, at once, in our own shape, and the connection is over."""
    began = time.monotonic()
    [answer] = target.tell(raw)
    took_s = time.monotonic() - began
    assert (answer.status, answer.code) == (status, code), answer
    require_own_shape(answer)
    assert answer.headers["connection"] == "close"
    assert took_s < AT_ONCE_S
