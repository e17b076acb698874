"""Requests that come together, and requests that hide in the bodies of others."""

from __future__ import annotations

from itertools import product
from string import ascii_lowercase

import pytest

from tests.http.hostile.target import Target, answers, require_own_shape

NAMES = ["".join(letters) for letters in product(ascii_lowercase, repeat=3)]


def test_a_thousand_requests_are_answered_in_their_order(target: Target) -> None:
    names = [f"order{name}" for name in NAMES[:500]]
    raw = b"".join(target.making(name) + target.request("GET", f"/no/{name}") for name in names)
    last = target.request("GET", "/readyz", None, "Connection: close")
    with target.connect() as client:
        client.sendall(raw + last)
        seen = list(answers(client))
    assert [answer.status for answer in seen] == [201, 404] * 500 + [200]
    assert [answer.json["name"] for answer in seen[:-1:2]] == names
    assert len({answer.headers["x-request-id"] for answer in seen}) == 1_001
    assert [name for name in target.made() if name.startswith("order")] == names


def test_after_a_refusal_nothing_more_is_read(target: Target) -> None:
    raw = target.making("ahead") + b"GET / HTTP/9.9\r\n\r\n" + target.making("behind")
    seen = target.tell(raw, target.making("behind"))
    assert [answer.status for answer in seen] == [201, 400]
    assert {"ahead", "behind"} & set(target.made()) == {"ahead"}


@pytest.mark.parametrize(
    "headers",
    [
        ("Connection: close",),
        ("Connection: x, Close",),
        ("Connection: close", "Connection: close"),
        ("Connection: keep-alive", "Connection: close"),
    ],
)
def test_after_a_last_request_nothing_more_is_read(
    target: Target, headers: tuple[str, ...]
) -> None:
    raw = target.making("lastbut", *headers) + target.making("afterlast")
    seen = target.tell(raw, target.making("afterlast"))
    assert [answer.status for answer in seen] == [201]
    assert "afterlast" not in target.made()


def test_a_client_that_has_stopped_sending_gets_all_answers(target: Target) -> None:
    names = [f"half{name}" for name in NAMES[:50]]
    with target.connect() as client:
        client.sendall(b"".join(map(target.making, names)) + b"GET / HT")
        client.shutdown(1)
        seen = list(answers(client))
    assert [answer.json["name"] for answer in seen] == names


def test_what_a_client_that_has_gone_had_sent_is_done_in_its_order_as_far_as_it_is(
    target: Target,
) -> None:
    names = [f"gone{name}" for name in NAMES[:500]]
    with target.connect() as client:
        client.sendall(b"".join(map(target.making, names)))
    target.require_calm()
    done = [name for name in target.made() if name.startswith("gone")]
    assert done == names[: len(done)]


INSIDE = b"POST /v2/things HTTP/1.1\r\nHost: h\r\n"
DISGUISES = {
    "a length and chunks": "Content-Length: {length}\r\nTransfer-Encoding: chunked",
    "chunks and a length": "Transfer-Encoding: chunked\r\nContent-Length: {length}",
    "a length and a folded coding": "Content-Length: {length}\r\nTransfer-Encoding:\r\n chunked",
    "a length and a coding with a tab": "Content-Length: {length}\r\nTransfer-Encoding:\tchunked",
    "a length and a coding in capitals": "Content-Length: {length}\r\nTRANSFER-ENCODING: CHUNKED",
    "a length and an unknown coding": "Content-Length: {length}\r\nTransfer-Encoding: xchunked",
    "a length and a coding and a space": "Content-Length: {length}\r\nTransfer-Encoding : chunked",
    "two lengths": "Content-Length: 5\r\nContent-Length: {length}",
    "two lengths, the other way round": "Content-Length: {length}\r\nContent-Length: 5",
    "two lengths in one": "Content-Length: 5, {length}",
    "a line feed before the coding": "Content-Length: {length}\nTransfer-Encoding: chunked",
    "a carriage return before the coding": "Content-Length: {length}\rTransfer-Encoding: chunked",
    "a NUL in the coding": "Content-Length: {length}\r\nTransfer-Encoding\x00: chunked",
}


@pytest.mark.parametrize("framing", DISGUISES.values(), ids=DISGUISES)
def test_a_request_inside_a_body_is_not_executed(target: Target, framing: str) -> None:
    hidden = target.making("hidden")
    body = b"0\r\n\r\n" + hidden
    head = target.request("POST", "/v2/things", None, framing.format(length=len(body)))
    seen = target.tell(head + body + target.making("hidden"))
    assert len(seen) == 1
    assert seen[0].status >= 400
    require_own_shape(seen[0])
    assert "hidden" not in target.made()


@pytest.mark.parametrize("version", ["1.0", "1.2", "2.0"])
def test_chunks_before_http_1_1_hide_nothing(target: Target, version: str) -> None:
    head = target.request(
        "POST", "/v2/things", None, "Transfer-Encoding: chunked", "Connection: keep-alive"
    ).replace(b"HTTP/1.1", b"HTTP/" + version.encode())
    hidden = target.making("hidden")
    seen = target.tell(head + b"%x\r\n" % len(hidden) + hidden + b"\r\n0\r\n\r\n")
    assert [answer.status for answer in seen] == [400]
    assert "hidden" not in target.made()


def test_a_body_that_is_a_request_is_a_body(target: Target) -> None:
    hidden = target.making("hidden")
    for method, path in (
        ("POST", "/v2/things"),
        ("GET", "/readyz"),
        ("GET", "/no"),
        ("PUT", "/v2/things"),
    ):
        outer = target.request(method, path, hidden, "Idempotency-Key: outer")
        last = target.request("GET", "/readyz", None, "Connection: close")
        assert len(target.tell(outer + last)) == 2
    in_chunks = target.request("POST", "/no", None, "Transfer-Encoding: chunked")
    seen = target.tell(in_chunks + b"%x\r\n" % len(hidden) + hidden + b"\r\n0\r\n\r\n", last)
    assert [answer.status for answer in seen] == [404, 200]
    assert "hidden" not in target.made()


def test_an_underscore_does_not_make_a_header(target: Target) -> None:
    body = b"0\r\n\r\n" + target.making("hidden")
    extra = "Transfer_Encoding: chunked"
    last = target.request("GET", "/readyz", None, "Connection: close")
    assert len(target.tell(target.request("POST", "/v2/things", body, extra) + last)) == 2
    assert "hidden" not in target.made()
