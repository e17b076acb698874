"""Calls of several threads that commit in one group."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from payments_core.conformance.storage.harness import PARTITION, fetch
from payments_core.conformance.storage.records import Note
from payments_core.storage.port import Transaction
from payments_core.storage.sqlite.adapter import SqliteStorage


def until(condition: Callable[[], bool]) -> None:
    """Wait for other threads to come to a point; there is no event to wait for."""
    end = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.000_5)


def in_one_group(
    storage: SqliteStorage, *calls: Callable[[], Any], amid: Callable[[], object] = bool
) -> list[Any]:
    """What calls return or raise when they commit together, in their order.

    A first work keeps the lead until all have come; then `amid` happens, and the group goes.
    """
    queue = storage._groups._queue
    outcomes: list[Any] = [None] * len(calls)
    led = threading.Event()

    def first(tx: Transaction) -> None:
        led.set()
        until(lambda: len(queue) == 1 + len(calls))
        amid()

    def run(place: int) -> None:
        led.wait(10)
        until(lambda: len(queue) == 1 + place)
        try:
            outcomes[place] = calls[place]()
        except BaseException as error:
            outcomes[place] = error

    threads = [threading.Thread(target=run, args=(place,)) for place in range(len(calls))]
    for thread in threads:
        thread.start()
    storage.transact(PARTITION, first)
    for thread in threads:
        thread.join(20)
    assert storage._groups._leader is None, "the lead was not given back"
    return outcomes


def insert(storage: SqliteStorage, id: str, code: str | None = None) -> Callable[[], Any]:
    def work(tx: Transaction) -> str:
        tx.insert(Note(id=id, code=code))
        return id

    return lambda: storage.transact(PARTITION, work)


def there(storage: SqliteStorage, *ids: str) -> list[bool]:
    return [fetch(storage, Note, id) is not None for id in ids]


def count_commits(storage: SqliteStorage, monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """One entry for each COMMIT from now on."""
    commits: list[bool] = []
    commit = storage._commit

    def counted(connection: sqlite3.Connection) -> None:
        commits.append(True)
        commit(connection)

    monkeypatch.setattr(storage, "_commit", counted)
    return commits
