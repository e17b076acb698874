"""Requests are read the same, wherever the network cuts them."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from payments_core_http.server.framing import IncomingRequest
from tests.http.hostile import test_bodies as bodies
from tests.http.hostile import test_heads as heads

MAX_BODY_BYTES = 131_072
CHUNKED = b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
NEXT = b"GET /next HTTP/1.1\r\nHost: h\r\n\r\n"
VALID = {
    "a query": b"GET //a%20b/?x=1#f HTTP/1.1\r\nHost:\r\nA: b\r\na:  c \r\nX_Y: no\r\n\r\n",
    "an absolute target": b"\r\nOPTIONS http://h:1/p?q HTTP/1.0\r\n\r\n",
    "a body": b"POST /a HTTP/1.1\r\nHost:\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\nabc",
    "chunks": CHUNKED
    + b'1;a=b;c="d"\r\n{\r\n0E\r\n"name": "parts\r\n2 \t;\r\n"}\r\n0\r\nA: b\r\n\r\n',
}
REFUSED = {
    **{name: (raw, 431) for name, raw in heads.TOO_LARGE.items()},
    **{name: (raw, 400) for name, raw in (heads.MALFORMED | heads.SLOW_TO_READ).items()},
    **{name: (CHUNKED + raw, 400) for name, raw in bodies.LIES.items()},
    **{name: (CHUNKED + raw, 413) for name, raw in bodies.ENDLESS.items()},
}


def read(*pieces: bytes) -> tuple[dict[str, Any], bytes]:
    """What a request says, and the bytes after it that came with its end."""
    request = IncomingRequest(MAX_BODY_BYTES)
    for piece in pieces:
        assert not request.completed
        unread = request.receive(piece)
        if request.completed:
            break
        assert unread == b""
    assert request.completed
    return {
        "code": request.error and request.error.code,
        "line": (request.command, request.request_uri, request.version),
        "target": (request.path, request.query),
        "headers": request.headers,
        "body": bytes(request.body),
    }, unread


@pytest.mark.parametrize("raw", VALID.values(), ids=VALID)
@given(st.data())
def test_a_request_is_read_the_same_wherever_it_is_cut(raw: bytes, data: st.DataObject) -> None:
    whole, unread = read(raw + NEXT)
    assert (whole["code"], unread) == (None, NEXT)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(raw)), max_size=6)))
    edges = [0, *cuts, len(raw)]
    pieces = [raw[a:b] for a, b in pairwise(edges) if a < b]
    assert read(*pieces) == (whole, b"")


@pytest.mark.parametrize(("raw", "code"), REFUSED.values(), ids=REFUSED)
def test_what_can_be_misread_is_refused_and_nothing_after_it_is_read(raw: bytes, code: int) -> None:
    pieces = [raw[at : at + 8_192] for at in range(0, len(raw), 8_192)]
    said, unread = read(*pieces)
    assert (said["code"], unread) == (code, b"")
    assert said["headers"] == {} or raw.startswith(CHUNKED)


def test_a_request_says_what_was_sent() -> None:
    said, _ = read(VALID["a query"])
    assert said["line"] == ("GET", "//a%20b/?x=1#f", "1.1")
    assert said["target"] == ("//a b/", "x=1")
    assert said["headers"] == {"HOST": "", "A": "b, c"}
    said, _ = read(VALID["chunks"])
    assert said["headers"] == {"HOST": "h", "CONTENT_LENGTH": "17"}
    assert said["body"] == b'{"name": "parts"}'
    said, _ = read(VALID["an absolute target"])
    assert said["target"] == ("/p", "q")
