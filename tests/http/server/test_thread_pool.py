"""One request computes at a time, and those that wait let others begin; and one thread attends to
the sockets, whatever the others do."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from payments_core_http.server import thread_pool
from payments_core_http.server.thread_pool import ThreadPool

WAIT_S = 10
THREADS = 4


class Work:
    """A task that does something."""

    may_write = True

    def __init__(self, do: Callable[[], object], caller: str = "", path: str = "/") -> None:
        self.do = do
        self.caller = caller
        self.path = path
        self.done = threading.Event()

    def service(self) -> None:
        self.do()
        self.done.set()

    def cancel(self) -> None:
        """Nobody asks."""


class Running:
    """How many run at a moment, and the maximum so far."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._now = self.most = 0

    def __enter__(self) -> None:
        with self._lock:
            self._now += 1
            self.most = max(self.most, self._now)

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._now -= 1

    def answer(self) -> None:
        """Run for a moment."""
        with self:
            for _ in range(2_000):
                pass


class Sockets:
    """Requests that come one by one, each after a turn of the loop."""

    def __init__(self, pool: ThreadPool) -> None:
        self._pool = pool
        self._came: queue.SimpleQueue[Work] = queue.SimpleQueue()
        self._turn = threading.Lock()
        self.attended_by = 0
        self.turns = 0

    def send(self, *works: Work) -> None:
        for work in works:
            self._came.put(work)

    def attend(self, wait_s: float) -> None:
        """One turn; no two threads may be at it."""
        assert self._turn.acquire(blocking=False)
        self.turns += 1
        self.attended_by = threading.get_ident()
        try:
            work = self._came.get(timeout=min(wait_s, 0.1)) if wait_s else self._came.get_nowait()
        except queue.Empty:
            return
        finally:
            self._turn.release()
        self._pool.add_task(work)


@contextmanager
def attended(pool: ThreadPool) -> Iterator[Sockets]:
    """The pool attends to sockets, until they are stopped."""
    sockets = Sockets(pool)
    attending = threading.Thread(target=pool.attend, args=(sockets.attend,))
    attending.start()
    try:
        yield sockets
    finally:
        pool.stop()
        attending.join(WAIT_S)
        assert not attending.is_alive()


@contextmanager
def pool_of(threads: int, reserved: str = "/alive") -> Iterator[ThreadPool]:
    pool = ThreadPool(threads, frozenset({reserved}))
    pool.start()
    try:
        yield pool
    finally:
        pool.shutdown(WAIT_S)


def answer_all(pool: ThreadPool, works: list[Work]) -> None:
    for work in works:
        pool.add_task(work)
    assert all(work.done.wait(WAIT_S) for work in works)


def test_requests_that_compute_are_answered_one_after_the_other(
    busy_pool: ThreadPool,
) -> None:
    running = Running()
    answer_all(busy_pool, [Work(running.answer) for _ in range(500)])
    assert running.most == 1


def test_requests_whose_waits_are_not_announced_have_all_threads() -> None:
    with pool_of(THREADS) as pool:
        together = threading.Barrier(THREADS)
        answer_all(pool, [Work(lambda: together.wait(WAIT_S)) for _ in range(THREADS)])


def test_a_request_that_has_stalled_lets_others_compute_one_after_the_other() -> None:
    """It needs no other look: a hanging call costs its own thread, and no time of the others."""
    with pool_of(THREADS) as pool:
        go, running = threading.Event(), Running()
        pool.add_task(hanging := Work(lambda: go.wait(WAIT_S)))
        answer_all(pool, [Work(running.answer) for _ in range(500)])
        assert running.most <= 2  # two, if a slow machine stops one for longer than `STALLED_S`
        assert not hanging.done.is_set()
        go.set()
        assert hanging.done.wait(WAIT_S)


def test_requests_that_wait_hold_up_no_other() -> None:
    with pool_of(THREADS) as pool:
        go = threading.Event()
        waiting = [Work(lambda: go.wait(WAIT_S)) for _ in range(THREADS - 1)]
        for work in waiting:
            pool.add_task(work)
        answer_all(pool, [Work(lambda: None)])
        assert not any(work.done.is_set() for work in waiting)
        go.set()


def test_who_sends_much_at_once_waits_for_his_own() -> None:
    order: list[str] = []
    with pool_of(1) as pool:
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

    with pool_of(THREADS) as pool:
        parts = [[Work(partial(counted.append, n)) for n in range(500)] for _ in range(4)]
        senders = [threading.Thread(target=send, args=(pool, works)) for works in parts]
        for sender in senders:
            sender.start()
        for sender in senders:
            sender.join()
        assert all(work.done.wait(WAIT_S) for works in parts for work in works)
    assert len(counted) == 2_000


def test_a_quick_request_is_answered_by_the_thread_that_read_it() -> None:
    with pool_of(THREADS) as pool, attended(pool) as sockets:
        readers: list[bool] = []

        def answer() -> None:
            readers.append(sockets.attended_by == threading.get_ident())

        for _ in range(50):
            work = Work(answer)
            sockets.send(work)
            assert work.done.wait(WAIT_S)
    assert any(readers)  # all, unless the machine was so slow that another one took over


def test_the_sockets_are_attended_while_an_answer_waits() -> None:
    with pool_of(THREADS) as pool, attended(pool) as sockets:
        go = threading.Event()
        waits, frees = Work(lambda: go.wait(WAIT_S)), Work(go.set)
        sockets.send(waits, frees)
        assert frees.done.wait(WAIT_S)
        assert waits.done.wait(WAIT_S)


def test_a_liveness_check_is_answered_while_all_threads_wait() -> None:
    with pool_of(THREADS) as pool, attended(pool) as sockets:
        go = threading.Event()
        waiting = [Work(lambda: go.wait(WAIT_S)) for _ in range(THREADS + 1)]
        sockets.send(*waiting)
        check = Work(lambda: None, path="/alive")
        sockets.send(check)
        assert check.done.wait(WAIT_S)
        assert not any(work.done.is_set() for work in waiting)
        go.set()
        assert all(work.done.wait(WAIT_S) for work in waiting)


def test_nobody_attends_any_more_after_a_stop_and_what_came_is_answered() -> None:
    with pool_of(THREADS) as pool:
        with attended(pool) as sockets:
            go = threading.Event()
            waiting = [Work(lambda: go.wait(WAIT_S)) for _ in range(3)]
            sockets.send(*waiting)
            while sockets.turns < 3:
                time.sleep(0.001)
        turns = sockets.turns
        late = Work(lambda: None)
        pool.add_task(late)
        assert late.done.wait(WAIT_S)
        go.set()
        assert sockets.turns == turns
        pool.attend(sockets.attend)  # which returns at once
        assert sockets.turns == turns


def test_an_error_of_the_sockets_ends_the_attending() -> None:
    def attend(wait_s: float) -> None:
        raise OSError("no epoll")

    with pool_of(THREADS) as pool, pytest.raises(OSError, match="no epoll"):
        pool.attend(attend)


def test_no_request_is_lost_between_sockets_and_threads() -> None:
    counted: list[int] = []

    def answer(number: int) -> None:
        if number % 50 == 0:
            time.sleep(2 * thread_pool.STALLED_S)  # another thread attends meanwhile
        counted.append(number)

    with pool_of(THREADS) as pool, attended(pool) as sockets:
        works = [Work(partial(answer, number)) for number in range(1_000)]
        sockets.send(*works)
        assert all(work.done.wait(WAIT_S) for work in works)
    assert sorted(counted) == list(range(1_000))


@pytest.fixture
def busy_pool(monkeypatch: pytest.MonkeyPatch) -> Iterator[ThreadPool]:
    """One thread at a time computes, however long it takes."""
    monkeypatch.setattr(ThreadPool, "_help", lambda *_: None)
    with pool_of(THREADS) as pool:
        yield pool


def wait(pool: ThreadPool, event: threading.Event) -> None:
    """Announce a wait, as for a database."""
    with pool.announce():
        assert event.wait(WAIT_S)


def test_a_task_that_says_that_it_waits_lets_another_begin(busy_pool: ThreadPool) -> None:
    come = threading.Event()
    waits, comes = Work(lambda: wait(busy_pool, come)), Work(come.set)
    with attended(busy_pool) as sockets:
        sockets.send(waits, comes)
        assert comes.done.wait(WAIT_S)
        assert waits.done.wait(WAIT_S)


def test_no_more_tasks_begin_than_there_are_threads(busy_pool: ThreadPool) -> None:
    come = threading.Event()
    begun: queue.SimpleQueue[int] = queue.SimpleQueue()

    def begin(number: int) -> None:
        begun.put(number)
        wait(busy_pool, come)

    works = [Work(partial(begin, number)) for number in range(THREADS + 1)]
    for work in works:
        busy_pool.add_task(work)
    assert [begun.get(timeout=WAIT_S) for _ in range(THREADS)] == list(range(THREADS))
    time.sleep(0.02)
    assert begun.empty()
    come.set()
    assert all(work.done.wait(WAIT_S) for work in works)


def test_tasks_that_have_waited_continue_one_after_the_other(busy_pool: ThreadPool) -> None:
    come, running = threading.Event(), Running()

    def answer() -> None:
        wait(busy_pool, come)
        with running:
            time.sleep(0.002)

    works = [Work(answer) for _ in range(THREADS)]
    answer_all(busy_pool, [*works[:-1], Work(come.set), works[-1]])
    assert running.most == 1


def test_a_turn_is_ended_by_any_thread_before_or_after_the_wait(busy_pool: ThreadPool) -> None:
    gates: queue.SimpleQueue[Any] = queue.SimpleQueue()
    ended = threading.Event()

    def answer(*, first: threading.Event | None) -> None:
        gates.put(gate := busy_pool.new_gate())
        if first is not None:
            assert first.wait(WAIT_S)
        gate.acquire()

    works = [Work(partial(answer, first=None)) for _ in range(THREADS - 1)]
    works.append(Work(partial(answer, first=ended)))
    for work in works:
        busy_pool.add_task(work)
    for _ in works:
        gates.get(timeout=WAIT_S).release()
    ended.set()
    assert all(work.done.wait(WAIT_S) for work in works)
    answer_all(busy_pool, [Work(lambda: None) for _ in range(3 * THREADS)])


def test_threads_that_end_their_turns_together_continue_one_after_the_other(
    busy_pool: ThreadPool,
) -> None:
    gates: queue.SimpleQueue[Any] = queue.SimpleQueue()
    running = Running()

    def follow() -> None:
        gates.put(gate := busy_pool.new_gate())
        gate.acquire()
        with running:
            time.sleep(0.002)

    def lead() -> None:
        for _ in range(THREADS - 1):
            gates.get(timeout=WAIT_S).release()

    answer_all(busy_pool, [*[Work(follow) for _ in range(THREADS - 1)], Work(lead)])
    assert running.most == 1


def test_a_task_gathers_those_that_can_begin(
    busy_pool: ThreadPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As transactions that share a commit: the first leads, and the others wait for it."""
    monkeypatch.setattr(thread_pool, "GATHER_S", 2 * WAIT_S)
    order: list[str] = []
    done = threading.Event()

    def lead() -> None:
        busy_pool.gather()
        order.append("leads")
        done.set()

    def follow(number: int) -> None:
        order.append(f"follows {number}")
        wait(busy_pool, done)

    first = threading.Event()
    works = [Work(lambda: first.wait(WAIT_S)), Work(lead)]
    works += [Work(partial(follow, number)) for number in range(THREADS)]
    for work in works:
        busy_pool.add_task(work)
    first.set()
    assert all(work.done.wait(WAIT_S) for work in works)
    led = order.index("leads")
    assert led == THREADS - 1, "as many as there are threads besides its own"


def test_a_task_that_gathers_alone_continues_at_once(
    busy_pool: ThreadPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(thread_pool, "GATHER_S", 2 * WAIT_S)
    answer_all(busy_pool, [Work(busy_pool.gather)])
    quick = [Work(lambda: None) for _ in range(THREADS)]
    answer_all(busy_pool, [Work(busy_pool.gather), *quick])


def test_a_task_gathers_none_that_only_read(
    busy_pool: ThreadPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(thread_pool, "GATHER_S", 2 * WAIT_S)
    order: list[str] = []
    first = threading.Event()

    def gather() -> None:
        busy_pool.gather()
        order.append("writes")

    works = [Work(lambda: first.wait(WAIT_S)), Work(gather), Work(partial(order.append, "reads"))]
    works[-1].may_write = False
    for work in works:
        busy_pool.add_task(work)
    first.set()
    assert all(work.done.wait(WAIT_S) for work in works)
    assert order == ["writes", "reads"]


def test_a_task_that_takes_long_holds_up_no_task_that_gathers() -> None:
    go = threading.Event()
    with pool_of(THREADS) as pool:
        long = Work(lambda: go.wait(WAIT_S))
        gathers = Work(pool.gather)
        pool.add_task(gathers)
        pool.add_task(long)
        assert gathers.done.wait(WAIT_S / 2)
        assert not long.done.is_set()
        go.set()


def test_a_wait_that_raises_ends_as_others_do(busy_pool: ThreadPool) -> None:
    def fail() -> None:
        with pytest.raises(ConnectionError), busy_pool.announce():
            raise ConnectionError

    answer_all(busy_pool, [Work(fail) for _ in range(20)])


def test_a_wait_within_a_wait_is_a_part_of_it(busy_pool: ThreadPool) -> None:
    """As of a storage, in a call of a simulated chain."""
    begun, come = threading.Event(), threading.Event()

    def answer() -> None:
        with busy_pool.announce():
            with busy_pool.announce():
                begun.set()
            busy_pool.gather()
            gate = busy_pool.new_gate()
            gate.release()
            gate.acquire()
            assert come.wait(WAIT_S)

    waits = Work(answer)
    busy_pool.add_task(waits)
    assert begun.wait(WAIT_S)
    answer_all(busy_pool, [Work(come.set)])
    assert waits.done.wait(WAIT_S)


def test_what_another_thread_announces_lets_nothing_begin(busy_pool: ThreadPool) -> None:
    """As the thread of a worker, which shares the storage."""
    begun, go, other = threading.Event(), threading.Event(), Work(lambda: None)
    busy_pool.add_task(Work(lambda: begun.set() or go.wait(WAIT_S)))
    assert begun.wait(WAIT_S)
    busy_pool.add_task(other)
    busy_pool.gather()
    gate = busy_pool.new_gate()
    gate.release()
    gate.acquire()
    with busy_pool.announce():
        assert not other.done.wait(0.01)
    go.set()
    assert other.done.wait(WAIT_S)


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.sampled_from(["answer", "gather", "wait", "both", "gate"]), max_size=40),
    st.integers(1, 5),
)
def test_every_task_is_answered_whatever_they_wait_for(kinds: list[str], threads: int) -> None:
    counted: list[int] = []

    def answer(number: int, kind: str) -> None:
        if kind in ("gather", "both"):
            pool.gather()
        if kind in ("wait", "both"):
            with pool.announce():
                time.sleep(0.000_1)
        if kind == "gate":
            gate = pool.new_gate()
            threading.Thread(target=gate.release).start()
            gate.acquire()
        counted.append(number)

    with pool_of(threads) as pool, attended(pool) as sockets:
        works = [Work(partial(answer, *it)) for it in enumerate(kinds)]
        for work, kind in zip(works, kinds, strict=True):
            work.may_write = kind != "answer"
        sockets.send(*works)
        assert all(work.done.wait(WAIT_S) for work in works)
    assert sorted(counted) == list(range(len(kinds)))
