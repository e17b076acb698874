"""Every wait for a client has an end, and a crowd does not keep others out."""

from __future__ import annotations

import contextlib
import resource
import select
import socket
import threading
import time
from string import ascii_lowercase

import pytest

from tests.http.hostile.target import (
    GROWTH_MB,
    Target,
    answers,
    next_answer,
    require_own_shape,
    serving,
    until,
)

CONNECTIONS = 1_000


def ended_after_s(client: socket.socket) -> float:
    """How long until the server closes, which sends nothing before."""
    began = time.monotonic()
    with contextlib.suppress(ConnectionResetError):
        assert client.recv(1) == b""
    return time.monotonic() - began


def test_a_connection_that_sends_nothing_is_ended(hasty: Target) -> None:
    with hasty.connect() as client:
        assert 0.9 < ended_after_s(client) < 6


def test_a_connection_that_has_been_answered_and_sends_no_more_is_ended(hasty: Target) -> None:
    with hasty.connect() as client, client.makefile("rb") as stream:
        client.sendall(hasty.request("GET", "/readyz"))
        assert next_answer(stream).status == 200
        assert 0.9 < ended_after_s(client) < 6


TRICKLES = {
    "a head": (b"GET /readyz HTTP/1.1\r\nA: ", b"a"),
    "a method": (b"", b"G"),
    "blank lines": (b"", b"\r\n"),
    "a body": (b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 900\r\n\r\n", b" "),
    "chunks": (b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n"),
    "trailers": (
        b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n",
        b"A: b\r\n",
    ),
}


@pytest.mark.parametrize(("begin", "then"), TRICKLES.values(), ids=TRICKLES)
def test_bytes_that_trickle_do_not_put_the_end_off(
    hasty: Target, begin: bytes, then: bytes
) -> None:
    began = time.monotonic()
    with hasty.connect() as client:
        client.sendall(begin)
        while not select.select([client], [], [], 0.1)[0]:
            assert time.monotonic() - began < 6
            client.sendall(then)
        [answer] = answers(client)
    assert (answer.status, answer.code) == (408, "request_timeout")
    require_own_shape(answer)
    assert time.monotonic() - began > 0.4


def test_a_client_that_does_not_read_its_answers_is_ended(hasty: Target) -> None:
    with hasty.connect(receive_bytes=2_048) as client:
        client.setblocking(False)
        asked = hasty.request("GET", "/openapi.json") * 30
        with contextlib.suppress(BlockingIOError):
            while asked:
                asked = asked[client.send(asked) :]
        held = hasty.at_rest.descriptors
        until(lambda: hasty.figures().descriptors > held)
        until(lambda: hasty.figures().descriptors == held)
    assert hasty.figures().memory_mb < hasty.at_rest.memory_mb + 30


def test_a_client_that_reads_a_little_at_times_is_ended(hasty: Target) -> None:
    began = time.monotonic()
    pause = threading.Event()
    with hasty.connect(receive_bytes=2_048) as client:
        client.sendall(hasty.request("GET", "/openapi.json") * 8)
        received = b"its first bytes"
        with contextlib.suppress(ConnectionResetError):
            while received:
                assert time.monotonic() - began < 8
                pause.wait(0.05)
                received = client.recv(1_000)
    assert received, "it was not reset, which would drop what the kernel holds for it"


def test_threads_are_not_kept_by_clients_that_do_not_read(target: Target) -> None:
    """Waitress keeps a thread for a client with 16 MB to take; here there were four of them."""
    with contextlib.ExitStack() as open_:
        for _ in range(16):
            client = open_.enter_context(target.connect(receive_bytes=2_048))
            client.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                client.sendall(target.request("GET", "/openapi.json") * 60)
        for _ in range(20):
            assert target.ask("/v2/partners/config").status == 200


def test_what_clients_have_not_taken_is_bounded_together() -> None:
    with serving(unsent_bytes=4 * 1024 * 1024) as target:
        with contextlib.ExitStack() as open_:
            for _ in range(400):
                client = open_.enter_context(target.connect(receive_bytes=2_048))
                client.setblocking(False)
                with contextlib.suppress(BlockingIOError):
                    client.sendall(target.request("GET", "/openapi.json") * 40)
            assert target.ask().status == 200
            until(lambda: target.figures().descriptors < target.at_rest.descriptors + 60)
            # Were it not, they would hold 400 times the largest answer, which is 250 MB.
            assert target.figures().memory_mb < target.at_rest.memory_mb + GROWTH_MB
        target.require_calm()


def test_two_thousand_connections_keep_nobody_out(target: Target) -> None:
    with contextlib.ExitStack() as open_:
        clients = [open_.enter_context(target.connect()) for _ in range(2 * CONNECTIONS)]
        assert target.ask().status == 200
        held = target.figures()
        assert held.descriptors <= target.at_rest.descriptors + CONNECTIONS + 64
        clients[-1].sendall(target.request("GET", "/readyz", None, "Connection: close"))
        assert [answer.status for answer in answers(clients[-1])] == [200]
        assert ended_after_s(clients[0]) < 5
    target.require_calm()
    assert "connections: the ones that have been idle longest are closed" in target.log()


def test_who_is_being_answered_does_not_give_way() -> None:
    with serving(connections=100) as target, contextlib.ExitStack() as open_:
        working = open_.enter_context(target.connect())
        names = [f"work{letter}" for letter in ascii_lowercase]
        working.sendall(b"".join(map(target.making, names)))
        with working.makefile("rb") as stream:
            done = [next_answer(stream).json["name"]]
            crowd = [open_.enter_context(target.connect()) for _ in range(300)]
            done += [next_answer(stream).json["name"] for _ in names[1:]]
        assert done == names
        assert len(crowd) == 300


def test_a_lack_of_descriptors_keeps_nobody_out() -> None:
    with serving() as target:
        _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.prlimit(target.pid, resource.RLIMIT_NOFILE, (60, hard))
        with contextlib.ExitStack() as open_:
            for _ in range(300):
                open_.enter_context(target.connect())
            for _ in range(20):
                assert target.ask().status == 200
        target.require_calm()
        assert target.log().count("could not be accepted") == 1


def test_a_connection_that_is_ended_mid_request_does_nothing(target: Target) -> None:
    raw = target.making("cutoff")
    for n in (1, 30, len(raw) - 1):
        with target.connect() as client:
            client.sendall(raw[:n])
    assert "cutoff" not in target.made()
