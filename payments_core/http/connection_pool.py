"""Connections that wait for their next request: limited in number, and closed after some seconds.

Each waits under a key with everything that was verified of it, and is only used again for that
key. Servers close theirs after five seconds or more; ours are closed earlier, so that few requests
are sent into a connection that is being closed.
"""

from __future__ import annotations

import os
import select
import threading
import time
import weakref
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, Generic, Protocol, TypeVar

import attrs

from payments_core.fork_safety import register_fork_reset

IDLE_TIMEOUT_S = 4.0
MAX_IDLE_PER_KEY = 16
MAX_IDLE_TOTAL = 256


@attrs.frozen
class ConnectionKey:
    """The target for which a connection was made and verified, and the process."""

    scheme: str
    host: str
    port: int
    address: str
    process: int = attrs.field(factory=os.getpid)
    """A forked child has its parent's connections, and must not use them."""


class PooledConnection(Protocol):
    """A socket, or an object with one."""

    def fileno(self) -> int:
        """The descriptor of the socket."""

    def close(self) -> None:
        """Close it."""


C = TypeVar("C", bound=PooledConnection)


class ConnectionPool(Generic[C]):
    """May be used from many threads at once. A thread sweeps it while it is not empty."""

    def __init__(
        self,
        idle_s: float = IDLE_TIMEOUT_S,
        max_per_key: int = MAX_IDLE_PER_KEY,
        max_total: int = MAX_IDLE_TOTAL,
    ) -> None:
        self._idle_s = idle_s
        self._max_per_key = max_per_key
        self._max_total = max_total
        self._lock = threading.Lock()
        self._since: dict[C, tuple[ConnectionKey, float]] = {}  # the oldest first
        self._by_key: dict[ConnectionKey, list[C]] = {}  # the oldest first
        self._closed = threading.Event()
        self._sweeps: int | None = None  # the sweeping process; a forked child has no thread
        self._inherited: tuple[dict[C, tuple[ConnectionKey, float]], ...] = ()
        self._finalizer = weakref.finalize(self, _close_all, self._since)  # who forgot to close it
        register_fork_reset(self)

    def reset_after_fork(self) -> None:
        """Start empty: another thread of the parent may have held the lock, in mid-change.

        The parent's connections are kept and not closed, as a close may speak TLS on its sockets.
        """
        self._finalizer.detach()
        self._inherited = (*self._inherited, self._since)
        self._lock = threading.Lock()
        self._since, self._by_key, self._sweeps = {}, {}, None
        was_closed, self._closed = self._closed.is_set(), threading.Event()
        if was_closed:
            self._closed.set()
        self._finalizer = weakref.finalize(self, _close_all, self._since)

    def take(self, keys: Iterable[ConnectionKey]) -> tuple[ConnectionKey, C] | None:
        """A waiting connection of the first of these keys that has any, without unread data.

        The youngest: it is the least likely to have been closed by the other side.
        """
        for key in keys:
            while (connection := self._pop(key)) is not None:
                if _is_silent(connection):
                    return key, connection
                connection.close()
        return None

    def put(self, key: ConnectionKey, connection: C) -> None:
        """Keep one, replacing older ones if there are too many."""
        with self._lock:
            if self._closed.is_set():
                connection.close()
                return
            self._since[connection] = (key, time.monotonic())
            beside = self._by_key.setdefault(key, [])
            beside.append(connection)
            if len(beside) > self._max_per_key:
                self._remove(beside[0]).close()
            if len(self._since) > self._max_total:
                self._remove(next(iter(self._since))).close()
            if self._sweeps != key.process:
                sweeper = threading.Thread(
                    target=_sweep, args=(weakref.ref(self), self._closed, self._idle_s / 4),
                    name="payments-idle", daemon=True,
                )  # fmt: skip
                with suppress(RuntimeError):  # no more threads: the next one is swept with this
                    sweeper.start()
                    self._sweeps = key.process

    def close(self) -> None:
        """Close all, and keep none from now on."""
        with self._lock:
            self._closed.set()
            for connection in tuple(self._since):
                self._remove(connection).close()

    def __len__(self) -> int:
        return len(self._since)

    def _pop(self, key: ConnectionKey) -> C | None:
        since = time.monotonic() - self._idle_s
        with self._lock:
            waiting = self._by_key.get(key)
            if not waiting or self._since[waiting[-1]][1] < since:
                return None  # the sweep will have them
            return self._remove(waiting[-1])

    def _remove(self, connection: C) -> C:
        key, _ = self._since.pop(connection)
        beside = self._by_key[key]
        beside.remove(connection)
        if not beside:
            del self._by_key[key]
        return connection

    def _close_expired(self) -> bool:
        """Close connections that have waited too long; return whether any are left."""
        since = time.monotonic() - self._idle_s
        with self._lock:
            while self._since:
                connection, (_, at) = next(iter(self._since.items()))
                if at > since:
                    return True
                self._remove(connection).close()
            self._sweeps = None
            return False


def _sweep(pool: weakref.ref[ConnectionPool[Any]], closed: threading.Event, pause_s: float) -> None:
    """Close connections that have waited too long, until none are left.

    It holds the pool only while it checks, so it does not keep a dropped pool open.
    """
    while True:
        closed.wait(pause_s)
        held = pool()
        if held is None or not held._close_expired():
            return
        del held


def _close_all(since: dict[Any, Any]) -> None:
    for connection in tuple(since):
        connection.close()


def _is_silent(connection: PooledConnection) -> bool:
    """Whether nothing has arrived: neither an end, nor unrequested data."""
    poll = select.poll()
    poll.register(connection, select.POLLIN)
    return not poll.poll(0)
