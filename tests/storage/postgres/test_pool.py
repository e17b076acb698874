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
from tests.waiting_pool import DEADLINE_S, WaitingPool


@pytest.fixture
def pool(url: str) -> Iterator[ConnectionPool]:
    pool = ConnectionPool(parse_url(f"{url}&pool=1", ConnectionSettings()))
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


def test_they_say_that_they_wait(pool: ConnectionPool) -> None:
    held, waiting = pool.acquire(), WaitingPool()
    waited = waiting.start(lambda: use(pool))
    assert waiting.waits.wait(DEADLINE_S)
    pid = held.connection.info.backend_pid
    pool.release(held)
    assert waited.result(DEADLINE_S) == pid
    assert not waiting.waits.is_set()


def test_they_say_so_too_while_a_connection_is_made(
    pool: ConnectionPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting, waited, connect = WaitingPool(), list[bool](), psycopg.connect

    def record(*arguments: Any, **more: Any) -> Any:
        waited.append(waiting.waits.is_set())
        return connect(*arguments, **more)

    monkeypatch.setattr(psycopg, "connect", record)
    assert waiting.start(lambda: use(pool)).result(DEADLINE_S)
    assert waited == [True]


def test_the_end_of_the_pool_ends_their_wait(pool: ConnectionPool) -> None:
    held, waiting = pool.acquire(), [WaitingPool() for _ in range(3)]
    waited = [one.start(lambda: use(pool)) for one in waiting]
    assert all(one.waits.wait(DEADLINE_S) for one in waiting)
    pool.close()
    pool.release(held)
    for one in waited:
        with pytest.raises(StorageUnavailable, match="closed"):
            one.result(DEADLINE_S)


def stop() -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("comes", [False, True])
def test_an_interrupted_wait_takes_no_connection_away(pool: ConnectionPool, comes: bool) -> None:
    held = pool.acquire()

    def be_interrupted() -> None:
        if comes:
            pool.release(held)  # it comes at the last moment
        stop()

    interrupted = WaitingPool(be_interrupted).start(lambda: use(pool))
    assert type(interrupted.exception(DEADLINE_S)) is KeyboardInterrupt
    if not comes:
        pool.release(held)
    assert use(pool)
    assert not pool._waiting


def test_a_connection_lost_with_its_thread_is_replaced_for_those_that_wait(
    pool: ConnectionPool,
) -> None:
    lost, waiting = pool.acquire(), WaitingPool()
    waited = waiting.start(lambda: use(pool))
    assert waiting.waits.wait(DEADLINE_S)
    lost.connection.close()
    del lost  # never given back
    assert use(pool)
    assert waited.result(DEADLINE_S)
