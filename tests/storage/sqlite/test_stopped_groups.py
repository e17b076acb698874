"""Threads that are stopped amid a group: they take their own work back, and nobody else's."""

from __future__ import annotations

import dis
import itertools
import signal
import sqlite3
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from payments_core.conformance.storage.harness import PARTITION
from payments_core.conformance.storage.records import Note
from payments_core.storage.port import CommitUnknown, Transaction
from payments_core.storage.sqlite import group_commit as sqlite_groups
from payments_core.storage.sqlite.adapter import SqliteStorage
from payments_core.waiting import Gate, closed_lock
from tests.storage.sqlite.groups import in_one_group, insert, there, until


class Stopped(BaseException):
    """As Ctrl-C stops a thread: no `except Exception` takes it."""


def test_a_leader_that_is_stopped_gives_the_others_back(storage: SqliteStorage) -> None:
    def stop(tx: Transaction) -> None:
        tx.insert(Note(id="stopped"))
        raise Stopped

    outcomes = in_one_group(
        storage,
        lambda: storage.transact(PARTITION, stop),
        insert(storage, "a"),
        insert(storage, "b"),
    )
    assert isinstance(outcomes[0], Stopped)
    assert outcomes[1:] == ["a", "b"]
    assert there(storage, "stopped", "a", "b") == [False, True, True]


def test_a_leader_that_is_stopped_in_its_commit_leaves_it_unknown(
    storage: SqliteStorage,
) -> None:
    commit = storage._commit
    commits = iter(range(10))

    def stop_second(connection: sqlite3.Connection) -> None:
        commit(connection)
        if next(commits) == 1:
            raise Stopped

    outcomes = in_one_group(
        storage,
        insert(storage, "a"),
        insert(storage, "b"),
        amid=lambda: setattr(storage, "_commit", stop_second),
    )
    assert isinstance(outcomes[0], Stopped)
    assert isinstance(outcomes[1], CommitUnknown)
    assert there(storage, "a", "b") == [True, True]
    assert insert(storage, "c")() == "c"


def test_a_leader_stopped_between_single_commits_repeats_none(storage: SqliteStorage) -> None:
    """The group was undone; of the works that then ran singly, one is committed, one stops."""
    interrupts = iter([True])

    def interrupted(tx: Any) -> None:
        for _ in interrupts:
            tx._connection.set_progress_handler(lambda: 1, 1)
            try:
                tx.insert(Note(id="i"))
            finally:
                tx._connection.set_progress_handler(None, 0)
        raise Stopped

    outcomes = in_one_group(
        storage,
        insert(storage, "a"),
        lambda: storage.transact(PARTITION, interrupted),
        insert(storage, "b"),
    )
    # The leader's own work was done; the stop is raised in its thread all the same, and then
    # in the thread whose work it was.
    assert isinstance(outcomes[0], Stopped)
    assert isinstance(outcomes[1], Stopped)
    assert outcomes[2] == "b"
    assert there(storage, "a", "b") == [True, True]


def test_ctrl_c_in_a_waiting_thread_takes_its_work_back(storage: SqliteStorage) -> None:
    """Python raises it in the main thread, which waits here behind two others."""
    leading, go = threading.Event(), threading.Event()

    def lead(tx: Transaction) -> None:
        leading.set()
        go.wait(10)

    def interrupt() -> None:
        until(lambda: len(storage._groups._queue) == 2)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        until(lambda: len(storage._groups._queue) == 1)
        go.set()

    threads = [
        threading.Thread(target=lambda: storage.transact(PARTITION, lead)),
        threading.Thread(target=interrupt),
    ]
    threads[0].start()
    leading.wait(10)
    threads[1].start()
    with pytest.raises(KeyboardInterrupt):
        insert(storage, "mine")()
    for thread in threads:
        thread.join(10)
    assert there(storage, "mine") == [False]
    assert insert(storage, "next")() == "next"


def test_a_thread_stopped_as_it_is_called_to_lead_leaves_another_to(
    storage: SqliteStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C may come between the call to lead and the next step."""
    sound = sqlite_groups._PendingWork

    class StoppedGate:
        def __init__(self, gate: Gate) -> None:
            self.release = gate.release
            self.taken = gate.acquire

        def acquire(self) -> None:
            self.taken()
            raise Stopped

    def waiting(run: Any, durable: bool, gate: Gate) -> Any:
        monkeypatch.setattr(sqlite_groups, "_PendingWork", sound)
        return sound(run, durable, StoppedGate(gate))

    def stopped() -> None:
        monkeypatch.setattr(sqlite_groups, "_PendingWork", waiting)
        insert(storage, "stopped")()

    outcomes = in_one_group(storage, stopped, insert(storage, "next"))
    assert isinstance(outcomes[0], Stopped)
    assert outcomes[1] == "next"
    assert there(storage, "stopped", "next") == [False, True]


_INTERRUPTIBLE = frozenset({"RESUME", "CALL", "CALL_KW", "CALL_FUNCTION_EX", "JUMP_BACKWARD"})
"""After these Python runs handlers of signals, and raises what was sent to a thread."""


def _stop_at(place: int) -> Callable[..., Any]:
    """A trace function that raises Stopped at such a place of group commits; the first is 1."""
    seen = itertools.count(1)
    last: dict[FrameType, str] = {}

    def trace(frame: FrameType, event: str, argument: object) -> Any:
        if frame.f_code.co_filename != sqlite_groups.__file__:
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            before = last.get(frame)
            last[frame] = dis.opname[frame.f_code.co_code[frame.f_lasti]]
            if before in _INTERRUPTIBLE and next(seen) == place:
                raise Stopped
        return trace

    return trace


def _stop_one(storage: SqliteStorage, place: int, *, leads: bool) -> bool:
    """Stop one of three threads at a place of its code; whether it had so many.

    The thread leads a group of all three, or comes first and leaves the lead to the others.
    """
    queue = storage._groups._queue
    outcomes: dict[str, object] = {}
    others = [f"a{place}", f"b{place}"]
    ready = threading.Event()

    def stopped(tx: Transaction) -> None:
        tx.insert(Note(id=f"stopped{place}"))
        if not leads:
            ready.set()
            until(lambda: len(queue) == 3)

    def run(name: str, call: Callable[[], object]) -> None:
        try:
            outcomes[name] = call()
        except BaseException as error:
            outcomes[name] = error

    def run_stopped() -> None:
        sys.settrace(_stop_at(place))
        try:
            storage.transact(PARTITION, stopped)
        finally:
            sys.settrace(None)
            ready.set()

    def is_there(count: int) -> bool:
        return len(queue) == count or "stopped" in outcomes

    def first(tx: Transaction) -> None:
        threads[0].start()
        until(lambda: is_there(2))
        for thread in threads[1:]:
            thread.start()
        until(lambda: is_there(4))

    threads = [threading.Thread(target=run, args=("stopped", run_stopped), daemon=True)]
    threads += [
        threading.Thread(target=run, args=(id, insert(storage, id)), daemon=True) for id in others
    ]
    if leads:
        storage.transact(PARTITION, first)
    else:
        threads[0].start()
        assert ready.wait(10)
        for thread in threads[1:]:
            thread.start()
    for thread in threads:
        thread.join(10)
    assert not queue and storage._groups._leader is None
    for id in others:
        if not isinstance(outcomes[id], CommitUnknown):
            assert outcomes[id] == id and there(storage, id) == [True], (place, outcomes)
    return isinstance(outcomes["stopped"], Stopped)


@pytest.mark.parametrize("leads", [True, False])
def test_a_thread_that_is_stopped_anywhere_leaves_nobody_waiting(
    storage: SqliteStorage, leads: bool
) -> None:
    """A time limit of a task is raised between any two steps, also while the others are woken."""
    place = 1
    while _stop_one(storage, place, leads=leads):
        place += 1
    assert place > 30


class TimeLimit(Exception):
    """As job queues raise it: an exception that a work could have raised too."""


@pytest.mark.parametrize("writes", [True, False])
def test_a_time_limit_of_a_leader_is_not_an_outcome_of_another(
    storage: SqliteStorage, writes: bool
) -> None:
    """It is raised wherever the thread is; the other's caller runs its work itself."""
    runs: list[int] = []

    def work(tx: Transaction) -> str:
        if writes:
            tx.insert(Note(id="own"))
        runs.append(threading.get_ident())
        if runs[0] == threading.get_ident() != owner[0]:
            raise TimeLimit
        return "own"

    owner: list[int] = []

    def mine() -> str:
        owner.append(threading.get_ident())
        return storage.transact(PARTITION, work)

    outcomes = in_one_group(storage, insert(storage, "a"), mine, insert(storage, "b"))
    assert outcomes == ["a", "own", "b"]
    assert there(storage, "a", "own", "b") == [True, writes, True]
    assert runs[-1] == owner[0]


def test_a_leader_that_is_stopped_before_it_wakes_the_next_still_does(
    storage: SqliteStorage, monkeypatch: pytest.MonkeyPatch
) -> None:
    wake = sqlite_groups._PendingWork.wake
    stops = iter([True])

    def stop_once(waiting: Any) -> None:
        for _ in stops:
            raise Stopped
        wake(waiting)

    monkeypatch.setattr(sqlite_groups._PendingWork, "wake", stop_once)
    with pytest.raises(Stopped):
        in_one_group(storage, insert(storage, "a"))
    until(lambda: there(storage, "a") == [True])
    until(lambda: storage._groups._leader is None)


def test_a_work_may_be_woken_twice() -> None:
    """By a call that was stopped as it woke the others, and began again."""
    waiting = sqlite_groups._PendingWork(lambda connection: None, True, closed_lock())
    waiting.wake()
    waiting.wake()
    waiting.gate.acquire()
