"""One answer is shared by all who ask within a moment, and never for longer."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from payments_core.chains.port import ChainUnavailable
from payments_core.chains.shared_read import SharedRead


class Node:
    """Counts its answers; hangs until it is released, and fails on request."""

    def __init__(self) -> None:
        self.asked = 0
        self.is_down = False
        self.released = threading.Event()
        self.reached = threading.Semaphore(0)
        self.now = 0.0

    def read(self) -> int:
        self.asked += 1
        self.reached.release()
        assert self.released.wait(30)
        if self.is_down:
            raise ChainUnavailable("the node is down")
        return self.asked

    def clock(self) -> float:
        return self.now


def test_an_answer_is_shared_until_it_is_too_old() -> None:
    node = Node()
    node.released.set()
    shared = SharedRead(node.read, 1.0, node.clock)
    assert [shared.get() for _ in range(3)] == [1, 1, 1]
    node.now = 0.999
    assert shared.get() == 1
    node.now = 1.0
    assert shared.get() == 2


def test_those_who_ask_meanwhile_wait_for_the_same_answer() -> None:
    node = Node()
    shared = SharedRead(node.read, 1.0, node.clock)
    with ThreadPoolExecutor(8) as pool:
        first = pool.submit(shared.get)
        assert node.reached.acquire(timeout=30)
        others = [pool.submit(shared.get) for _ in range(7)]
        node.released.set()
        assert {one.result(30) for one in [first, *others]} == {1}
    assert node.asked == 1


def test_an_answer_that_took_long_is_as_old_as_its_question() -> None:
    node = Node()
    node.released.set()

    def read() -> int:
        node.now += 2
        return node.read()

    shared = SharedRead(read, 1.0, node.clock)
    assert [shared.get(), shared.get()] == [1, 2]


def test_a_failure_is_shared_and_not_kept() -> None:
    node = Node()
    node.is_down = True
    shared = SharedRead(node.read, 1.0, node.clock)
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(shared.get)
        assert node.reached.acquire(timeout=30)
        other = pool.submit(shared.get)
        node.released.set()
        for one in (first, other):
            with pytest.raises(ChainUnavailable):
                one.result(30)
    node.is_down = False
    assert shared.get() == node.asked
