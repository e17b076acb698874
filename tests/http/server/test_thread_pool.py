"""How many requests the threads take at once: fewer where they work, more where they wait."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

from payments_core_http.server.thread_pool import ThreadPool

WAIT_S = 10
THREADS = 4


class Work:
    """A task that does something."""

    path = "/"

    def __init__(self, do: Callable[[], object], caller: str = "") -> None:
        self.do = do
        self.caller = caller
        self.done = threading.Event()

    def service(self) -> None:
        self.do()
        self.done.set()

    def cancel(self) -> None:
        """Nobody asks."""


class Running:
    """How many run at a moment, and the most that did."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._now = self.most = 0

    def answer(self) -> None:
        """Run for a moment."""
        with self._lock:
            self._now += 1
            self.most = max(self.most, self._now)
        for _ in range(2_000):
            pass
        with self._lock:
            self._now -= 1


class Processor:
    """What the process took of it: all the time, or nothing of it."""

    def __init__(self) -> None:
        self.is_working = True

    def __call__(self) -> float:
        return time.monotonic() if self.is_working else 0.0


@contextmanager
def pool_of(threads: int, processor: Processor) -> Iterator[ThreadPool]:
    pool = ThreadPool(threads, processor_s=processor)
    try:
        yield pool
    finally:
        pool.shutdown(WAIT_S)


def answer_all(pool: ThreadPool, works: list[Work]) -> None:
    for work in works:
        pool.add_task(work)
    assert all(work.done.wait(WAIT_S) for work in works)


def work_until_alone(pool: ThreadPool) -> None:
    """Give it requests until one thread at a time takes them."""
    deadline = time.monotonic() + WAIT_S
    while time.monotonic() < deadline:
        running = Running()
        answer_all(pool, [Work(running.answer) for _ in range(200)])
        if running.most == 1:
            return
    raise AssertionError("threads never stopped running at once")


def test_requests_that_work_are_answered_one_after_the_other() -> None:
    with pool_of(THREADS, Processor()) as pool:
        work_until_alone(pool)


def test_requests_that_wait_have_all_threads_again() -> None:
    processor = Processor()
    with pool_of(THREADS, processor) as pool:
        work_until_alone(pool)
        processor.is_working = False
        together = threading.Barrier(THREADS)
        answer_all(pool, [Work(lambda: together.wait(WAIT_S)) for _ in range(THREADS)])


def test_requests_that_wait_hold_up_no_other_while_the_processor_works() -> None:
    """It may work for something else: another tenant's jobs, or a page that is long."""
    with pool_of(THREADS, Processor()) as pool:
        work_until_alone(pool)
        go = threading.Event()
        waiting = [Work(lambda: go.wait(WAIT_S)) for _ in range(THREADS - 1)]
        for work in waiting:
            pool.add_task(work)
        answer_all(pool, [Work(lambda: None)])
        assert not any(work.done.is_set() for work in waiting)
        go.set()


def test_who_sends_much_at_once_waits_for_his_own() -> None:
    order: list[str] = []
    with pool_of(1, Processor()) as pool:
        begun, go = threading.Event(), threading.Event()
        pool.add_task(Work(lambda: begun.set() or go.wait(WAIT_S), "greedy"))
        assert begun.wait(WAIT_S)
        works = [Work(partial(order.append, f"greedy {n}"), "greedy") for n in range(20)]
        works += [Work(partial(order.append, f"other {n}"), "other") for n in range(2)]
        for work in works:
            pool.add_task(work)
        go.set()
        assert all(work.done.wait(WAIT_S) for work in works)
    assert order[:5] == ["greedy 0", "other 0", "greedy 1", "other 1", "greedy 2"]


def test_no_task_is_lost_however_many_come_from_however_many_threads() -> None:
    counted: list[int] = []

    def send(pool: ThreadPool, works: list[Work]) -> None:
        for work in works:
            pool.add_task(work)

    with pool_of(THREADS, Processor()) as pool:
        parts = [[Work(partial(counted.append, n)) for n in range(500)] for _ in range(4)]
        senders = [threading.Thread(target=send, args=(pool, works)) for works in parts]
        for sender in senders:
            sender.start()
        for sender in senders:
            sender.join()
        assert all(work.done.wait(WAIT_S) for works in parts for work in works)
    assert len(counted) == 2_000
