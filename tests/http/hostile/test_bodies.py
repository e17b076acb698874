"""Bodies that are not what their heads say."""

from __future__ import annotations

import http.client
import json
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.http.hostile.target import Target, answers, next_answer, require_own_shape

LIMIT_BYTES = 64 * 1024
GIGABYTE = 10**9


def chunked(target: Target, name: str, *body: bytes) -> list[bytes]:
    """A request in chunks that would make a thing of that name, as pieces to send."""
    head = target.request(
        "POST", "/v2/things", None, "Content-Type: application/json", f"Idempotency-Key: {name}",
        "Transfer-Encoding: chunked",
    )  # fmt: skip
    return [head, *body]


LIES = {
    "a chunk longer than its size": b'3\r\n{"name": "lies"}\r\n0\r\n\r\n',
    "a size with a sign": b"+3\r\nabc\r\n0\r\n\r\n",
    "a blank after the size": b"3 \r\nabc\r\n0\r\n\r\n",
    "a size in words": b"three\r\nabc\r\n0\r\n\r\n",
    "no size": b";a=b\r\nabc\r\n0\r\n\r\n",
    "a blank line for a size": b"\r\n3\r\nabc\r\n0\r\n\r\n",
    "a size that overflows": b"1" + b"0" * 16 + b"\r\nabc\r\n0\r\n\r\n",
    "a size of 100 kB": b"0" * 100_000 + b"3\r\nabc\r\n0\r\n\r\n",
    "a size that a line feed ends": b"3\nabc\r\n0\r\n\r\n",
    "a line feed inside the line of a size": b"3\n\r\nabc\r\n0\r\n\r\n",
    "a NUL after the size": b"3\x00\r\nabc\r\n0\r\n\r\n",
    "an extension without end": b"3;" + b"x" * 100_000,
    "a trailer without end": b"0\r\nA: " + b"x" * 100_000,
    "a trailer that is not a field": b"0\r\nnothing\r\n\r\n",
    "ten thousand chunks of a byte": b"1\r\n \r\n" * 10_000 + b"0\r\n\r\n",
    "a request for a trailer": b"0\r\nGET /readyz HTTP/1.1\r\n\r\n",
}


@pytest.mark.parametrize("body", LIES.values(), ids=LIES)
def test_chunks_that_lie_are_refused(target: Target, body: bytes) -> None:
    [answer] = target.tell(*chunked(target, "lies", body))
    assert (answer.status, answer.code) == (400, "malformed_request")
    require_own_shape(answer)
    assert "lies" not in target.made()


ENDLESS = {
    "a chunk of exabytes": b"F" * 16 + b"\r\n" + b" " * 300_000,
    "trailers": b"0\r\n" + b"A: b\r\n" * 60_000,
    "extensions": (b"1;" + b"x" * 1_000 + b"\r\n \r\n") * 300,
}


@pytest.mark.parametrize("body", ENDLESS.values(), ids=ENDLESS)
def test_chunks_without_end_are_refused_after_128_kib(target: Target, body: bytes) -> None:
    [answer] = target.tell(*chunked(target, "endless", body))
    assert (answer.status, answer.code) == (413, "payload_too_large")
    require_own_shape(answer)


def test_honest_chunks_are_put_together(target: Target) -> None:
    parts = b'1;a=b;c="d"\r\n{\r\n0E\r\n"name": "parts\r\n2 \t;\r\n"}\r\n0\r\nDate: today\r\n\r\n'
    with target.connect() as client:
        for n in range(len(parts)):  # wherever they are cut
            client.sendall(chunked(target, "parts", parts[:n])[0] + parts[:n])
            client.sendall(parts[n:])
        client.sendall(target.request("GET", "/readyz", None, "Connection: close"))
        seen = list(answers(client))
    assert [answer.status for answer in seen] == [201] * len(parts) + [200]
    assert target.made().count("parts") == 1


def test_a_gigabyte_is_refused_when_it_is_announced(target: Target) -> None:
    head = target.request("POST", "/v2/things", None, f"Content-Length: {GIGABYTE}")
    [answer] = target.tell(head)
    assert (answer.status, answer.code) == (413, "payload_too_large")


def test_who_sends_on_regardless_still_gets_the_refusal(target: Target) -> None:
    head = target.request("POST", "/v2/things", None, f"Content-Length: {GIGABYTE}")
    [answer] = target.tell(head, *[b"x" * 100_000] * 100)
    assert (answer.status, answer.code) == (413, "payload_too_large")
    require_own_shape(answer)


def test_one_byte_too_many_is_the_applications_to_refuse(target: Target) -> None:
    body = b" " * (LIMIT_BYTES + 1)
    raw = target.request("POST", "/v2/things", body, "Idempotency-Key: k", "Connection: close")
    [answer] = target.tell(raw)
    assert (answer.status, answer.code) == (413, "payload_too_large")
    anonymous = raw.replace(target.authorization.encode(), b"Bearer nobody")
    [answer] = target.tell(anonymous)
    assert answer.status == 401


def test_a_body_that_never_comes_is_given_up(hasty: Target) -> None:
    head = hasty.request("POST", "/v2/things", None, "Content-Length: 20", "Idempotency-Key: late")
    sent = [[head], [head, b'{"name": "late"}']]
    parts = (b"", b"1", b"5\r\nabc", b"1\r\nx\r\n", b"1\r\nx\r\n0\r\n", b"0\r\nA: b\r\n")
    sent += [chunked(hasty, "late", part) for part in parts]
    with ThreadPoolExecutor(len(sent)) as pool:
        seen = list(pool.map(lambda pieces: hasty.tell(*pieces), sent))
    for [answer] in seen:
        assert (answer.status, answer.code) == (408, "request_timeout")
        require_own_shape(answer)
    assert "late" not in hasty.made()


def test_who_expects_100_continue_gets_it_once(target: Target) -> None:
    body = b'{"name": "polite"}'
    expecting = (
        "Content-Type: application/json", "Idempotency-Key: polite", "Expect: 100-continue",
    )  # fmt: skip
    with target.connect() as client, client.makefile("rb") as stream:
        length = f"Content-Length: {len(body)}"
        client.sendall(target.request("POST", "/v2/things", None, length, *expecting))
        assert [stream.readline(), stream.readline()] == [b"HTTP/1.1 100 Continue\r\n", b"\r\n"]
        client.sendall(body)
        assert next_answer(stream).status == 201
        client.sendall(target.request("GET", "/readyz"))
        assert next_answer(stream).status == 200


@pytest.mark.parametrize(
    ("extra", "status"),
    [((), 200), (("Content-Length: 0",), 200), ((f"Content-Length: {GIGABYTE}",), 413)],
)
def test_who_has_nothing_to_send_gets_no_100_continue(
    target: Target, extra: tuple[str, ...], status: int
) -> None:
    """A server could say so, and take the next request's head for a part of this one's."""
    expecting = target.request("GET", "/readyz", None, "Expect: 100-continue", *extra)
    plain = target.request("GET", "/v2/partners/config", None, "Connection: close")
    seen = target.tell(expecting, plain)
    assert [answer.status for answer in seen] == ([200, 200] if status == 200 else [413])
    assert b"appId" in seen[-1].body or status == 413


def test_a_body_of_single_bytes_arrives(target: Target) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", target.port, timeout=10)
    pieces = iter([bytes([byte]) for byte in b'{"name": "single"}' + b" " * 4_000])
    headers = {
        "Authorization": target.authorization, "Content-Type": "application/json",
        "Idempotency-Key": "single",
    }  # fmt: skip
    connection.request("POST", "/v2/things", pieces, headers)
    response = connection.getresponse()
    assert (response.status, json.loads(response.read())["name"]) == (201, "single")
    connection.close()
