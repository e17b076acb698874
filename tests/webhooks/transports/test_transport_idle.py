"""Connections that wait: how many, how long, and for whom."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Iterator

import attrs
import pytest

from payments_core.http.connection_pool import ConnectionKey, ConnectionPool

HTTPS = ConnectionKey("https", "partner.example", 443, "93.184.216.34")


class Pairs:
    """Connections with their other ends."""

    def __init__(self) -> None:
        self.others: dict[socket.socket, socket.socket] = {}

    def make(self) -> socket.socket:
        ours, theirs = socket.socketpair()
        theirs.settimeout(10)
        self.others[ours] = theirs
        return ours

    def was_closed(self, connection: socket.socket) -> bool:
        """Whether it is closed, or is so within some seconds."""
        return self.others[connection].recv(1) == b""


@pytest.fixture
def pairs() -> Iterator[Pairs]:
    made = Pairs()
    yield made
    for ours, theirs in made.others.items():
        ours.close()
        theirs.close()


@pytest.fixture
def idle() -> Iterator[ConnectionPool[socket.socket]]:
    made: ConnectionPool[socket.socket] = ConnectionPool(60, max_per_key=3, max_total=5)
    yield made
    made.close()


@pytest.mark.parametrize(
    "other",
    [
        attrs.evolve(HTTPS, scheme="http"),
        attrs.evolve(HTTPS, host="other.example"),
        attrs.evolve(HTTPS, port=8443),
        attrs.evolve(HTTPS, address="93.184.216.35"),
        attrs.evolve(HTTPS, process=os.getpid() + 1),
    ],
)
def test_a_connection_is_given_out_for_its_own_key_only(idle, pairs, other: ConnectionKey) -> None:  # type: ignore[no-untyped-def]
    connection = pairs.make()
    idle.put(HTTPS, connection)
    assert idle.take([other]) is None
    assert idle.take([other, HTTPS]) == (HTTPS, connection)
    assert idle.take([HTTPS]) is None


def test_the_youngest_comes_first(idle, pairs) -> None:  # type: ignore[no-untyped-def]
    connections = [pairs.make() for _ in range(3)]
    for connection in connections:
        idle.put(HTTPS, connection)
    taken = [idle.take([HTTPS])[1] for _ in range(3)]
    assert taken == connections[::-1]


def test_one_that_was_closed_or_has_heard_something_is_closed(idle, pairs) -> None:  # type: ignore[no-untyped-def]
    quiet, ended, talking = (pairs.make() for _ in range(3))
    for connection in (quiet, ended, talking):
        idle.put(HTTPS, connection)
    pairs.others[ended].shutdown(socket.SHUT_WR)
    pairs.others[talking].sendall(b"HTTP/1.1 408 Too Slow\r\n\r\n")
    assert idle.take([HTTPS]) == (HTTPS, quiet)
    assert ended.fileno() == talking.fileno() == -1


def test_the_oldest_make_room(idle, pairs) -> None:  # type: ignore[no-untyped-def]
    mine = [pairs.make() for _ in range(4)]
    for connection in mine:
        idle.put(HTTPS, connection)
    assert pairs.was_closed(mine[0])
    others = [pairs.make() for _ in range(4)]
    for place, connection in enumerate(others):
        idle.put(attrs.evolve(HTTPS, port=place), connection)
    assert len(idle) == 5
    assert pairs.was_closed(mine[1])
    assert pairs.was_closed(mine[2])
    assert idle.take([HTTPS]) == (HTTPS, mine[3])


def test_one_that_waits_too_long_is_closed(pairs) -> None:  # type: ignore[no-untyped-def]
    idle: ConnectionPool[socket.socket] = ConnectionPool(0.05)
    for _ in range(2):  # the sweep ends when nothing is left, and begins anew
        connections = [pairs.make() for _ in range(3)]
        for connection in connections:
            idle.put(HTTPS, connection)
        assert all(pairs.was_closed(connection) for connection in connections)
        assert len(idle) == 0


def test_one_that_is_too_old_is_not_given_out(pairs) -> None:  # type: ignore[no-untyped-def]
    idle: ConnectionPool[socket.socket] = ConnectionPool(0)
    idle.put(HTTPS, pairs.make())
    assert idle.take([HTTPS]) is None
    idle.close()


def test_closing_closes_all_and_keeps_none_after(idle, pairs) -> None:  # type: ignore[no-untyped-def]
    before, after = pairs.make(), pairs.make()
    idle.put(HTTPS, before)
    idle.close()
    idle.put(HTTPS, after)
    assert before.fileno() == after.fileno() == -1
    assert idle.take([HTTPS]) is None


def test_many_threads_never_have_the_same_one(idle, pairs) -> None:  # type: ignore[no-untyped-def]
    for _ in range(3):
        idle.put(HTTPS, pairs.make())
    used: set[socket.socket] = set()
    twice: list[socket.socket] = []
    lock = threading.Lock()

    def work() -> None:
        for _ in range(300):
            if (found := idle.take([HTTPS])) is None:
                continue
            with lock:
                if found[1] in used:
                    twice.append(found[1])
                used.add(found[1])
            with lock:
                used.discard(found[1])
            idle.put(*found)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not twice
    assert len(idle) == 3


def test_a_child_starts_empty_whoever_holds_the_lock_at_its_fork(idle, pairs) -> None:  # type: ignore[no-untyped-def]
    """A child that waits for a lock that no thread of it releases is ended by its alarm."""
    connection = pairs.make()
    idle.put(HTTPS, connection)
    with idle._lock:  # as another thread may
        child = os.fork()
        if child == 0:
            signal.alarm(10)
            here = attrs.evolve(HTTPS, process=os.getpid())
            idle.put(here, pairs.make())
            right = len(idle) == 1 and idle.take([HTTPS]) is None and idle.take([here]) is not None
            idle.close()
            os._exit(0 if right else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert idle.take([HTTPS]) == (HTTPS, connection)


@pytest.mark.parametrize("is_closed", [True, False])
def test_a_child_keeps_none_if_its_parent_has_closed(idle, pairs, is_closed: bool) -> None:  # type: ignore[no-untyped-def]
    if is_closed:
        idle.close()
    child = os.fork()
    if child == 0:
        idle.put(attrs.evolve(HTTPS, process=os.getpid()), pairs.make())
        os._exit(len(idle))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == (0 if is_closed else 1)
