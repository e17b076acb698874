"""Callers that wait for one of the pool's connections."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from payments_core.storage.port import StorageUnavailable
from payments_core.storage.postgres.pool import ConnectionPool
from payments_core.storage.postgres.url import ConnectionSettings, parse_url
from tests.recorded_waits import DEADLINE_S, RecordedWaits


@pytest.fixture
def waits() -> RecordedWaits:
    return RecordedWaits()


@pytest.fixture
def pool(url: str, waits: RecordedWaits) -> Iterator[ConnectionPool]:
    pool = ConnectionPool(parse_url(f"{url}&pool=1", ConnectionSettings()), waits)
    yield pool
    pool.close()


def use(pool: ConnectionPool) -> int:
    """Which connection was free in the end."""
    pipeline = pool.acquire()
    pid = pipeline.connection.info.backend_pid
    pool.release(pipeline)
    return pid


def test_they_get_it_in_the_order_of_their_arrival(pool: ConnectionPool) -> None:
    held, served, callers = pool.acquire(), list[int](), []

    def follow(number: int) -> None:
        pipeline = pool.acquire()
        served.append(number)
        pool.release(pipeline)

    for number in range(4):
        callers.append(threading.Thread(target=follow, args=(number,)))
        callers[-1].start()
        while len(pool._waiting) == number:
            threading.Event().wait(0.001)
    pool.release(held)
    for caller in callers:
        caller.join(DEADLINE_S)
    assert served == list(range(4))


def test_they_say_that_they_wait(pool: ConnectionPool, waits: RecordedWaits) -> None:
    held = pool.acquire()
    waited = waits.start(lambda: use(pool))
    waits.expect()
    pid = held.connection.info.backend_pid
    pool.release(held)
    assert waited.result(DEADLINE_S) == pid
    assert not waits.waiting


def test_they_say_so_too_while_a_connection_is_made(
    pool: ConnectionPool, waits: RecordedWaits, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited, connect = list[int](), psycopg.connect

    def record(*arguments: Any, **more: Any) -> Any:
        waited.append(waits.waiting)
        return connect(*arguments, **more)

    monkeypatch.setattr(psycopg, "connect", record)
    assert waits.start(lambda: use(pool)).result(DEADLINE_S)
    assert waited == [1]


def test_the_end_of_the_pool_ends_their_wait(pool: ConnectionPool, waits: RecordedWaits) -> None:
    held = pool.acquire()
    waited = [waits.start(lambda: use(pool)) for _ in range(3)]
    for _ in waited:
        waits.expect()
    pool.close()
    pool.release(held)
    for one in waited:
        with pytest.raises(StorageUnavailable, match="closed"):
            one.result(DEADLINE_S)


def stop() -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("comes", [False, True])
def test_an_interrupted_wait_takes_no_connection_away(
    pool: ConnectionPool, waits: RecordedWaits, comes: bool
) -> None:
    held = pool.acquire()

    def be_interrupted() -> None:
        if comes:
            pool.release(held)  # it comes at the last moment
        stop()

    interrupted = waits.start(lambda: use(pool), be_interrupted)
    assert type(interrupted.exception(DEADLINE_S)) is KeyboardInterrupt
    if not comes:
        pool.release(held)
    assert use(pool)
    assert not pool._waiting


def test_a_connection_lost_with_its_thread_is_replaced_for_those_that_wait(
    pool: ConnectionPool, waits: RecordedWaits
) -> None:
    lost = pool.acquire()
    waited = waits.start(lambda: use(pool))
    waits.expect()
    lost.connection.close()
    del lost  # never given back
    assert use(pool)
    assert waited.result(DEADLINE_S)
