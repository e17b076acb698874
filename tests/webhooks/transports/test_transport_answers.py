"""Responses read byte for byte: what they are taken for, and whether the connection is clean."""

from __future__ import annotations

import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from payments_core.http.response import (
    MAX_CHUNK_LINE_BYTES,
    MAX_HEAD_BYTES,
    MAX_INTERIM_RESPONSES,
    READ_BYTES,
    NoResponse,
    ResponseReader,
    read_response,
)
from payments_core.webhooks.transports.port import (
    MAX_RESPONSE_BODY_BYTES,
    Deadline,
    TransportResult,
)

BEGIN = b"HTTP/1.1 200 OK\r\n"


def read(*pieces: bytes, ended: bool = True) -> tuple[TransportResult, bool]:
    """The answer that comes in these pieces, and whether the connection is clean after it."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        incoming = ResponseReader(ours, Deadline.after(0.2 if not ended else 10))
        receive = filter(None, pieces)

        def more() -> bool:
            for piece in receive:
                theirs.sendall(piece)
                return ResponseReader.receive(incoming)
            if ended:
                theirs.shutdown(socket.SHUT_WR)
            return ResponseReader.receive(incoming)

        incoming.receive = more  # type: ignore[method-assign]
        answer, clean = read_response(incoming, MAX_RESPONSE_BODY_BYTES)
        return TransportResult(answer.status, answer.body, answer.retry_after), clean


def head(*lines: str, end: bytes = b"\r\n") -> bytes:
    return BEGIN + b"".join(line.encode("latin-1") + end for line in lines) + b"\r\n"


CLEAN = (
    (head("Content-Length: 2") + b"ok", b"ok"),
    (head("content-LENGTH:\t2 \t") + b"ok", b"ok"),
    (head("Content-Length: 0"), b""),
    (head("Content-Length: 0002") + b"ok", b"ok"),
    (
        head(f"Content-Length: {MAX_RESPONSE_BODY_BYTES}") + b"x" * MAX_RESPONSE_BODY_BYTES,
        b"x" * MAX_RESPONSE_BODY_BYTES,
    ),
    (head("Transfer-Encoding: chunked") + b"2\r\nok\r\n0\r\n\r\n", b"ok"),
    (head("Transfer-Encoding: Chunked") + b"00A\r\n0123456789\r\n0\r\n\r\n", b"0123456789"),
    (head("Connection: keep-alive", "Content-Length: 0"), b""),
    (head("x-odd: \x80\xff \t", "x-empty:", "Content-Length: 0"), b""),
    (b"HTTP/1.1 204 \r\n\r\n", b""),
    (b"HTTP/1.1 304\r\nContent-Length: 7\r\n\r\n", b""),
    (b"HTTP/1.1 100 Continue\r\n\r\n" + head("Content-Length: 0"), b""),
    (b"HTTP/1.1 103 Hints\r\nLink: x\r\n\r\n" * 3 + head("Content-Length: 0"), b""),
)


@pytest.mark.parametrize(("response", "body"), CLEAN)
def test_a_plain_response_leaves_the_connection_clean(response: bytes, body: bytes) -> None:
    outcome, clean = read(response, ended=False)
    assert (outcome.body, clean) == (body, True)
    assert not read(response + b"H", ended=False)[1], "something is left over"


@pytest.mark.parametrize(("response", "body"), CLEAN)
def test_a_response_is_the_same_in_pieces(response: bytes, body: bytes) -> None:
    pieces = [response[at : at + 1] for at in range(min(len(response), 300))]
    assert read(*pieces, response[300:], ended=False)[0].body == body


NOT_CLEAN = (
    # It says so itself, or its end is the connection's.
    (head("Connection: close", "Content-Length: 2") + b"ok", b"ok"),
    (head("Connection: keep-alive, Close", "Content-Length: 2") + b"ok", b"ok"),
    (head("Connection: keep-alive", "Connection: close", "Content-Length: 2") + b"ok", b"ok"),
    (head("Connection: upgrade", "Content-Length: 2") + b"ok", b"ok"),
    (b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", b"ok"),
    (b"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 2\r\n\r\nok", b"ok"),
    (head() + b"until the end", b"until the end"),
    (b"HTTP/1.1 101 Switching\r\n\r\nwhatever", b""),
    # Not read to its end.
    (head("Content-Length: 9") + b"ok", b"ok"),
    (
        head(f"Content-Length: {MAX_RESPONSE_BODY_BYTES + 1}")
        + b"x" * (MAX_RESPONSE_BODY_BYTES + 1),
        b"x" * MAX_RESPONSE_BODY_BYTES,
    ),
    (head("Transfer-Encoding: chunked") + b"2\r\nok\r\n", b"ok"),
    (head("Transfer-Encoding: chunked") + b"9\r\nok", b"ok"),
    # Two lengths, or none that is one.
    (head("Content-Length: 2", "Content-Length: 2") + b"ok", b"ok"),
    (head("Content-Length: 2", "Content-Length: 9") + b"ok", b"ok"),
    (head("Content-Length: 2, 2") + b"ok", b"ok"),
    (head("Content-Length: -2") + b"ok", b"ok"),
    (head("Content-Length: +2") + b"ok", b"ok"),
    (head("Content-Length: 0x2") + b"ok", b"ok"),
    (head("Content-Length: 2.0") + b"ok", b"ok"),
    (head("Content-Length: \xb2") + b"ok", b"ok"),
    (head("Content-Length:") + b"ok", b"ok"),
    (head("Content-Length: " + "9" * 4000) + b"ok", b"ok"),
    (head("Content-Length: 999999999999999") + b"ok", b"ok"),
    (b"HTTP/1.1 204 None\r\nContent-Length: x\r\n\r\n", b""),
    (b"HTTP/1.1 204 None\r\nTransfer-Encoding: chunked\r\n\r\n", b""),
    # Codings.
    (head("Transfer-Encoding: chunked", "Content-Length: 2") + b"2\r\nok\r\n0\r\n\r\n", b"ok"),
    (head("Transfer-Encoding: gzip, chunked") + b"ok", b"ok"),
    (head("Transfer-Encoding: identity", "Content-Length: 2") + b"ok", b"ok"),
    (head("Transfer-Encoding: chunked", "Transfer-Encoding: chunked") + b"ok", b"ok"),
    (head("Transfer-Encoding: xchunked") + b"ok", b"ok"),
    # Chunks.
    (head("Transfer-Encoding: chunked") + b"2;a=b\r\nok\r\n0\r\n\r\n", b"ok"),
    (head("Transfer-Encoding: chunked") + b"2\r\nok\r\n0\r\nx: y\r\n\r\n", b"ok"),
    (head("Transfer-Encoding: chunked") + b"2\nok\r\n0\r\n\r\n", b""),
    (head("Transfer-Encoding: chunked") + b"2\r\nokay\r\n0\r\n\r\n", b"ok"),
    (head("Transfer-Encoding: chunked") + b"-2\r\nok\r\n0\r\n\r\n", b""),
    (head("Transfer-Encoding: chunked") + b"+2\r\nok\r\n0\r\n\r\n", b""),
    (head("Transfer-Encoding: chunked") + b"0x2\r\nok\r\n0\r\n\r\n", b""),
    (head("Transfer-Encoding: chunked") + b" 2\r\nok\r\n0\r\n\r\n", b""),
    (head("Transfer-Encoding: chunked") + b"\r\nok\r\n0\r\n\r\n", b""),
    (head("Transfer-Encoding: chunked") + b"f" * 40 + b"\r\nok", b""),
    (head("Transfer-Encoding: chunked") + b"2;" + b"x" * MAX_CHUNK_LINE_BYTES + b"\r\nok", b""),
    # Heads that are not as they should be.
    (head("Content-Length: 2", end=b"\n") + b"ok", b"ok"),
    (BEGIN.replace(b"\r", b"") + b"Content-Length: 2\n\nok", b"ok"),
    (head("Content-Length: 2", " 0") + b"ok", b"ok"),
    (head("x: y", "\tz", "Content-Length: 2") + b"ok", b"ok"),
    (head("Content-Length : 2") + b"ok", b"ok"),
    (head(" Content-Length: 2") + b"ok", b"ok"),
    (head("x: y\rContent-Length: 0", "Content-Length: 2") + b"ok", b"ok"),
    (head("no colon", "Content-Length: 2") + b"ok", b"ok"),
    (head(": no name", "Content-Length: 2") + b"ok", b"ok"),
    (head("x: \x00", "Content-Length: 2") + b"ok", b"ok"),
    (b"HTTP/1.1  200 OK\r\nContent-Length: 2\r\n\r\nok", b"ok"),
)


@pytest.mark.parametrize(("response", "body"), NOT_CLEAN)
def test_an_odd_response_counts_and_ends_the_connection(response: bytes, body: bytes) -> None:
    outcome, clean = read(response)
    assert outcome.status in {101, 200, 204}
    assert (outcome.body, clean) == (body, False)


@pytest.mark.parametrize(
    "response",
    [
        b"",
        b"H",
        b"HTTP/1.1 200 OK\r\n",
        b"HTTP/2 200\r\n\r\n",
        b"HTTP/1.1200 OK\r\n\r\n",
        b"HTTP/1.1 2000 OK\r\n\r\n",
        b"HTTP/1.1 20 OK\r\n\r\n",
        b"HTTP/1.1 099 OK\r\n\r\n",
        b"HTTP/1.1 -20 OK\r\n\r\n",
        b"HTTP/1.1 2\xb20 OK\r\n\r\n",
        b"\r\nHTTP/1.1 200 OK\r\n\r\n",
        b"http/1.1 200 OK\r\n\r\n",
        BEGIN + b"x: y\r\n" * 101 + b"\r\n",
        BEGIN + b"x: " + b"y" * MAX_HEAD_BYTES + b"\r\n\r\n",
        b"HTTP/1.1 102 Wait\r\n\r\n" * MAX_INTERIM_RESPONSES + BEGIN + b"\r\n",
        (b"HTTP/1.1 102 Wait\r\nx: " + b"y" * 15_000 + b"\r\n\r\n") * 5 + BEGIN + b"\r\n",
    ],
)
def test_what_is_not_a_response_is_not_an_answer(response: bytes) -> None:
    with pytest.raises(NoResponse):
        read(*(response[at : at + READ_BYTES] for at in range(0, len(response), READ_BYTES)))


def test_what_does_not_begin_as_a_response_is_not_waited_for() -> None:
    with pytest.raises(NoResponse):
        read(b"SSH-2.0", ended=False)


def test_a_body_that_cannot_be_distinguished_is_not_waited_for() -> None:
    outcome, clean = read(head("Content-Length: 5, 6") + b"ok", ended=False)
    assert (outcome, clean) == (TransportResult(200, b"ok"), False)


def test_what_came_of_a_body_is_kept_when_the_deadline_comes() -> None:
    for response in (
        head("Content-Length: 9") + b"ok",
        head() + b"ok",
        head("Transfer-Encoding: chunked") + b"9\r\nok",
    ):
        assert read(response, ended=False) == (TransportResult(200, b"ok"), False)


def test_retry_after_is_the_final_responses() -> None:
    early = b"HTTP/1.1 103 Hints\r\nRetry-After: 1\r\n\r\n"
    assert read(early + head("Content-Length: 0"))[0].retry_after is None
    assert read(head("RETRY-AFTER:  7 ", "Content-Length: 0"))[0].retry_after == "7"
    assert read(head("Retry-After: 7", "Retry-After: 8"))[0].retry_after == "7, 8"


PIECES = st.lists(
    st.one_of(
        st.binary(max_size=20),
        st.sampled_from(
            [
                BEGIN, b"\r\n", b"\n", b"\r\n\r\n", b"Content-Length: ", b"2", b"ok", b"0\r\n\r\n",
                b"Transfer-Encoding: chunked\r\n", b"2\r\nok\r\n", b"Connection: close\r\n", b" ",
                b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 204 None\r\n", b"Retry-After: 1\r\n",
            ]
        ),
    ),
    max_size=12,
)  # fmt: skip


def taken(*pieces: bytes) -> object:
    try:
        return read(*pieces)
    except NoResponse:
        return "no answer"


@given(PIECES)
def test_however_it_is_cut_a_response_is_the_same(pieces: list[bytes]) -> None:
    """And whatever comes, it is an answer or none, and nothing else is raised."""
    whole = taken(b"".join(pieces))
    in_pieces = taken(*pieces)
    if not isinstance(whole, tuple) or not isinstance(in_pieces, tuple):
        assert whole == in_pieces
        return
    assert whole[0].status == in_pieces[0].status
    assert whole[0].retry_after == in_pieces[0].retry_after
    # Of a body whose end is unclear is kept what came with the head; and what is left over of a
    # whole may still be to come of its pieces.
    assert whole[0].body.startswith(in_pieces[0].body)
    assert in_pieces[1] or not whole[1]
