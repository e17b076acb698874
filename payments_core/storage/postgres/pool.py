"""The connections to PostgreSQL that a process keeps.

The last one given back is the first one taken, so what is not needed grows old and is closed.
There are no threads: who needs a connection makes it, and learns at once why it cannot be made.
psycopg's own pool closes a connection with an answer on its way, and so cannot take back one that
has just left a snapshot.
"""

from __future__ import annotations

import os
import random
import threading
import time
import weakref
from collections import deque
from contextlib import suppress

import psycopg

from payments_core.storage.port import StorageUnavailable
from payments_core.storage.postgres.address import Address
from payments_core.storage.postgres.errors import connect_error, storage_error
from payments_core.storage.postgres.wire import Failed, Wire

MAX_LIFETIME_S = 3_600
"""A server's process grows by what it caches; a tenth of chance keeps them from ending at once."""
MAX_IDLE_S = 600


class Slot:
    """The right to one connection."""


class Pool:
    """Connections to one address, at most so many; for many threads."""

    def __init__(self, address: Address) -> None:
        self._address = address
        self._most = address.settings.pool
        self._idle: deque[Wire] = deque()
        self._taken: weakref.WeakSet[Slot] = weakref.WeakSet()
        """Weakly: a connection that an interrupt lost on its way is not counted for ever."""
        self._changed = threading.Condition()
        self._random = random.Random()
        self._process = os.getpid()
        self._closed = False

    def take(self) -> Wire:
        """A connection that seems to work. Raises StorageUnavailable."""
        slot, wire = self._kept()
        try:
            while wire is not None and not (self._is_young(wire) and wire.is_alive()):
                wire.connection.close()
                wire = self._next_kept()
            wire = wire or self.connect()
        except BaseException:
            self._gone(slot)
            raise
        wire.slot = slot
        return wire

    def give_back(self, wire: Wire) -> None:
        """Keep it for the next one, unless it has ended."""
        wire.used_at = time.monotonic()
        slot, wire.slot = wire.slot, None
        with self._changed:
            self._taken.discard(slot)
            keeps = not self._closed and wire.is_free
            if keeps:
                self._idle.append(wire)
            old = self._outdated(wire.used_at)
            self._changed.notify()
        if not keeps:
            old.append(wire)
        if wire.is_unanswered:  # on the others nobody would answer either
            self.drop_idle()
        for ended in old:
            ended.connection.close()

    def connect(self) -> Wire:
        """A connection beyond those that are counted. Raises StorageUnavailable."""
        settings = self._address.settings
        try:
            connection = psycopg.connect(
                autocommit=True, prepare_threshold=None, **self._address.parameters
            )
        except psycopg.Error as error:
            why = connect_error(error)
            raise storage_error(why) from why
        return Wire(connection, prepares=settings.prepare, answer_ms=settings.answer_ms)

    def drop_idle(self) -> None:
        """Forget the connections that nobody uses: their server may be the one that went."""
        with self._changed:
            idle, self._idle = self._idle, deque()
        for wire in idle:
            wire.connection.close()

    def close(self) -> None:
        """Close what is idle now, and the others as they come back."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self.drop_idle()

    def _kept(self) -> tuple[Slot, Wire | None]:
        """The right to one connection more, and one to use if there is one."""
        timeout_s = self._address.settings.pool_timeout_s
        with self._changed:
            self._changed.wait_for(lambda: self._closed or len(self._taken) < self._most, timeout_s)
            if self._closed:
                raise StorageUnavailable("the storage is closed")
            if self._process != os.getpid():
                raise StorageUnavailable(
                    "PostgreSQL's connections do not survive a fork; open the storage again"
                )
            if len(self._taken) >= self._most:
                raise StorageUnavailable(
                    f"PostgreSQL: none of {self._most} connections came free in {timeout_s} s"
                )
            slot = Slot()
            self._taken.add(slot)
            return slot, self._idle.pop() if self._idle else None

    def _next_kept(self) -> Wire | None:
        with self._changed:
            return self._idle.pop() if self._idle else None

    def _gone(self, slot: Slot) -> None:
        with self._changed:
            self._taken.discard(slot)
            self._changed.notify()

    def _outdated(self, now: float) -> list[Wire]:
        """Those, taken out, that nobody has needed for long."""
        old = []
        while self._idle and now - self._idle[0].used_at > MAX_IDLE_S:
            old.append(self._idle.popleft())
        return old

    def _is_young(self, wire: Wire) -> bool:
        age_s = time.monotonic() - wire.made_at
        return age_s < MAX_LIFETIME_S * (1 - 0.1 * self._random.random())


def settled(wire: Wire) -> psycopg.Connection[tuple[object, ...]]:
    """The driver's connection, ready for its own cursors. Raises StorageUnavailable."""
    with suppress(Failed):
        wire.settle()
        return wire.connection
    raise StorageUnavailable("PostgreSQL: the connection was lost")
