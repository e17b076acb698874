"""Threads that are stopped amid a group: they take their own work back, and nobody else's."""

from __future__ import annotations

import signal
import sqlite3
import threading
from typing import Any

import pytest

from payments_core.conformance.storage.harness import PARTITION
from payments_core.conformance.storage.records import Note
from payments_core.storage.port import CommitUnknown, Transaction
from payments_core.storage.sqlite import group_commit as sqlite_groups
from payments_core.storage.sqlite.adapter import SqliteStorage
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
        until(lambda: len(storage._groups._queue) == 1)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        until(lambda: len(storage._groups._queue) == 0)
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

    class Turn:
        def __init__(self, turn: threading.Lock) -> None:
            self.release = turn.release
            self.taken = turn.acquire

        def acquire(self) -> None:
            self.taken()
            raise Stopped

    def waiting(run: Any, durable: bool) -> Any:
        monkeypatch.setattr(sqlite_groups, "_PendingWork", sound)
        mine: Any = sound(run, durable)
        mine.turn = Turn(mine.turn)
        return mine

    def stopped() -> None:
        monkeypatch.setattr(sqlite_groups, "_PendingWork", waiting)
        insert(storage, "stopped")()

    outcomes = in_one_group(storage, stopped, insert(storage, "next"))
    assert isinstance(outcomes[0], Stopped)
    assert outcomes[1] == "next"
    assert there(storage, "stopped", "next") == [False, True]
