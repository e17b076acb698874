"""Connections that several processes accept from one queue are divided between them."""

from __future__ import annotations

import os
import socket
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from payments_core.clock import SystemClock
from payments_core.engine.identifiers import Identifiers
from payments_core.entropy import system_entropy
from payments_core_http.server.server import Server, listen
from payments_core_http.server.shared_queue import (
    ACCEPTS_AFTER_YIELD,
    MAX_ACCEPTS,
    SLACK,
    YIELD_S,
    QueueMember,
    SharedQueue,
)
from payments_core_http.serving import build_server

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

GET = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n"
CLIENTS = 24
BURSTS = 5
SOON_S = 5.0


def name(number: int) -> WSGIApplication:
    def answer(environ: WSGIEnvironment, start_response: StartResponse) -> list[bytes]:
        start_response("200 OK", [("Content-Length", "1")])
        return [b"%d" % number]

    return answer


@contextmanager
def servers(queue: SharedQueue, *numbers: int) -> Iterator[list[Server]]:
    identifiers = Identifiers(SystemClock(), system_entropy)
    members = [QueueMember(queue, number) for number in numbers]
    with queue.listening, ExitStack() as stack:
        for member in members:
            member.listening = queue.listening.dup()  # as a fork does
        yield [
            stack.enter_context(build_server(name(number), identifiers, queue=member))
            for number, member in zip(numbers, members, strict=True)
        ]


def ask_all(port: int, clients: int) -> Counter[str]:
    """Who answers so many clients, each of which keeps its connection."""
    with ExitStack() as stack:
        opened = [
            stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=SOON_S))
            for _ in range(clients)
        ]
        for one in opened:
            one.sendall(GET)
        return Counter(one.recv(4_096)[-1:].decode() for one in opened)


def test_two_processes_share_the_connections_of_a_burst() -> None:
    queue = SharedQueue(listen("127.0.0.1", 0), 2)
    with servers(queue, 1, 2) as (one, _):
        deadline = time.monotonic() + SOON_S
        while max(queue.fewest_besides(1), queue.fewest_besides(2)) > CLIENTS:
            assert time.monotonic() < deadline, "one of them does not accept"
        # One of them may get no processor during a single burst.
        answered = sum((ask_all(one.port, CLIENTS) for _ in range(BURSTS)), Counter())
    assert answered.total() == BURSTS * CLIENTS
    assert min(answered["1"], answered["2"]) >= BURSTS * CLIENTS // 6, answered


def test_a_process_that_hangs_delays_no_connection_for_long() -> None:
    queue = SharedQueue(listen("127.0.0.1", 0), 2)
    queue.report(2, 0)  # it accepts nothing
    with servers(queue, 1) as (one,):
        began = time.monotonic()
        assert ask_all(one.port, CLIENTS) == {"1": CLIENTS}
        assert time.monotonic() - began < SOON_S


def test_a_process_that_has_stopped_is_not_waited_for() -> None:
    queue = SharedQueue(listen("127.0.0.1", 0), 2)
    with servers(queue, 1, 2) as (one, two):
        two.stop()
        assert ask_all(one.port, 1)
        deadline = time.monotonic() + SOON_S
        while queue.fewest_besides(1) < MAX_ACCEPTS:
            assert time.monotonic() < deadline
        while ask_all(one.port, CLIENTS) != {"1": CLIENTS}:  # it empties the backlog before it ends
            assert time.monotonic() < deadline


def test_processes_see_each_others_counts() -> None:
    queue = SharedQueue(listen("127.0.0.1", 0), 3)
    with queue.listening:
        if (child := os.fork()) == 0:
            queue.report(2, 7)
            os._exit(0)
        os.waitpid(child, 0)
        assert queue.fewest_besides(1) == 7
        assert queue.fewest_besides(2) > 1_000_000


@given(st.lists(st.integers(0, 1_000), min_size=1, max_size=8), st.integers(0, 500))
def test_connections_become_level_with_the_fewest(counts: list[int], burst: int) -> None:
    """Members that are asked in turn accept a whole burst, and none gets far ahead."""
    with socket.socket() as listening:
        queue = SharedQueue(listening, len(counts))
        members = [QueueMember(queue, number) for number in range(1, len(counts) + 1)]
        for number, count in enumerate(counts, 1):
            queue.report(number, count)
        highest, now, left = max(counts), 0.0, burst
        for _ in range(burst + 1):
            for index, member in enumerate(members):
                taken = min(left, member.choose_accepts(counts[index], now))
                left -= taken
                counts[index] += taken
                queue.report(index + 1, counts[index])
            now += 3 * YIELD_S  # nobody accepts because others would not
        fewest = min(counts)
        assert left == 0
        assert len(counts) == 1 or max(counts) <= max(highest, fewest + SLACK + fewest // SLACK)


def test_a_member_that_is_ahead_yields_and_then_accepts_a_few() -> None:
    with socket.socket() as listening:
        queue = SharedQueue(listening, 2)
        member = QueueMember(queue, 1)
        queue.report(2, 0)
        assert member.choose_accepts(SLACK - 1, 10.0) == 1
        assert member.choose_accepts(SLACK, 10.0) == 0
        assert not member.may_accept(SLACK, 10.001)
        assert member.yield_left_s(10.001) == pytest.approx(YIELD_S - 0.001)
        assert member.may_accept(SLACK - 1, 10.001), "its own connections have ended meanwhile"
        after = 10.0 + 1.5 * YIELD_S
        assert member.may_accept(SLACK, after)
        assert member.choose_accepts(SLACK, after) == ACCEPTS_AFTER_YIELD
        assert member.choose_accepts(SLACK, after) == 0
        assert member.choose_accepts(SLACK, 60.0) == 0, "the others may have come back"
        queue.leave(2)
        assert member.choose_accepts(SLACK, 60.0) == MAX_ACCEPTS
