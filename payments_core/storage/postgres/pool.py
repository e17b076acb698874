"""The connections to PostgreSQL that a process keeps.

The connection returned last is taken first, so unneeded ones grow old and are closed.
There are no threads: a caller that needs a connection makes it, and sees at once why it fails.
psycopg's own pool closes a connection with an answer on its way, and so cannot reuse one that
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

import attrs
import psycopg

from payments_core.requirements import find_version_fault, split_number
from payments_core.storage.port import StorageError, StorageUnavailable
from payments_core.storage.postgres.errors import connect_error, storage_error
from payments_core.storage.postgres.pipeline import PipelinedConnection, StatementFailed
from payments_core.storage.postgres.url import ConnectionTarget
from payments_core.waiting import Waits, closed_lock

MAX_LIFETIME_S = 3_600
"""A server's process grows by what it caches; a random tenth keeps them from ending at once."""
MAX_IDLE_S = 600


class PoolPermit:
    """The right to one connection."""


@attrs.define(eq=False)
class _Waiting:
    """A caller that waits for a permit."""

    permit: PoolPermit | None = None
    gate: threading.Lock = attrs.field(factory=closed_lock)
    """Released when it has got one, or never will."""


class ConnectionPool:
    """A limited number of connections to one address, for many threads."""

    def __init__(self, address: ConnectionTarget, waits: Waits) -> None:
        """Raises StorageError for a libpq that is too old."""
        if fault := find_version_fault("libpq", split_number(psycopg.pq.version())):
            raise StorageError(fault)
        self._address = address
        self._waits = waits
        self._most = address.settings.pool
        self._idle: deque[PipelinedConnection] = deque()
        self._taken: weakref.WeakSet[PoolPermit] = weakref.WeakSet()
        """Weakly: a connection lost to an interrupt is not counted forever."""
        self._waiting: deque[_Waiting] = deque()
        self._lock = threading.Lock()
        """Guards the three above."""
        self._random = random.Random()
        self._process = os.getpid()
        self._closed = False

    def acquire(self) -> PipelinedConnection:
        """A connection that seems to work. Raises StorageUnavailable."""
        permit, pipeline = self._acquire_permit()
        try:
            while pipeline is not None and not (self._is_young(pipeline) and pipeline.is_alive()):
                pipeline.connection.close()
                pipeline = self._pop_idle()
            pipeline = pipeline or self.connect()
        except BaseException:
            self._release_permit(permit)
            raise
        pipeline.permit = permit
        return pipeline

    def release(self, pipeline: PipelinedConnection) -> None:
        """Keep it for the next caller, unless it has ended."""
        pipeline.used_at_ms = time.monotonic()
        permit, pipeline.permit = pipeline.permit, None
        with self._lock:
            keeps = not self._closed and pipeline.is_free
            if keeps:
                self._idle.append(pipeline)
            old = self._pop_outdated(pipeline.used_at_ms)
            self._pass_on(permit)
        if not keeps:
            old.append(pipeline)
        if pipeline.is_unanswered:  # the others would not answer either
            self.drop_idle()
        for ended in old:
            ended.connection.close()

    def connect(self) -> PipelinedConnection:
        """A connection beyond the counted ones.

        Raises StorageUnavailable, and StorageError for a server that is too old.
        """
        settings = self._address.settings
        try:
            with self._waits.announce():
                connection = psycopg.connect(
                    autocommit=True, prepare_threshold=None, **self._address.parameters
                )
        except psycopg.Error as error:
            why = connect_error(error)
            raise storage_error(why) from why
        # The server names its version as it greets: this is no round trip.
        version = split_number(connection.info.server_version)
        if fault := find_version_fault("PostgreSQL", version):
            connection.close()
            raise StorageError(fault)
        return PipelinedConnection(
            connection,
            prepares=settings.prepare,
            response_timeout_ms=settings.response_timeout_ms,
            waits=self._waits,
        )

    def drop_idle(self) -> None:
        """Drop the idle connections: their server may be the one that went away."""
        with self._lock:
            idle, self._idle = self._idle, deque()
        for pipeline in idle:
            pipeline.connection.close()

    def close(self) -> None:
        """Close idle connections now, and the others when they are returned."""
        with self._lock:
            self._closed = True
            while self._waiting:
                self._waiting.popleft().gate.release()
        self.drop_idle()

    def _acquire_permit(self) -> tuple[PoolPermit, PipelinedConnection | None]:
        """The right to another connection, and an idle one if there is one."""
        with self._lock:
            self._require_usable()
            self._admit_waiting()  # if a permit was lost
            if len(self._taken) < self._most:
                return self._new_permit(), self._idle.pop() if self._idle else None
            waiting = _Waiting()
            self._waiting.append(waiting)
        return self._wait_for_permit(waiting), self._pop_idle()

    def _wait_for_permit(self, waiting: _Waiting) -> PoolPermit:
        timeout_s = self._address.settings.pool_timeout_s
        try:
            with self._waits.announce():
                waiting.gate.acquire(timeout=timeout_s)
            with self._lock:
                self._require_usable()
                if waiting.permit is None:
                    raise StorageUnavailable(
                        f"PostgreSQL: all {self._most} connections were in use for {timeout_s} s"
                    )
            return waiting.permit
        except BaseException:
            with self._lock:
                if waiting in self._waiting:
                    self._waiting.remove(waiting)
                elif waiting.permit is not None:
                    self._pass_on(waiting.permit)
            raise

    def _require_usable(self) -> None:
        if self._closed:
            raise StorageUnavailable("the storage is closed")
        if self._process != os.getpid():
            raise StorageUnavailable(
                "PostgreSQL's connections do not survive a fork; open the storage again"
            )

    def _pop_idle(self) -> PipelinedConnection | None:
        with self._lock:
            return self._idle.pop() if self._idle else None

    def _release_permit(self, permit: PoolPermit) -> None:
        with self._lock:
            self._pass_on(permit)

    def _pass_on(self, permit: PoolPermit) -> None:
        """Take a permit back, and give it to the caller that has waited longest, if any; the lock
        is held."""
        self._taken.discard(permit)
        self._admit_waiting()

    def _admit_waiting(self) -> None:
        while self._waiting and len(self._taken) < self._most:
            next_one = self._waiting.popleft()
            next_one.permit = self._new_permit()
            next_one.gate.release()

    def _new_permit(self) -> PoolPermit:
        permit = PoolPermit()
        self._taken.add(permit)
        return permit

    def _pop_outdated(self, now: float) -> list[PipelinedConnection]:
        """Remove and return the connections that nobody has needed for long."""
        old = []
        while self._idle and now - self._idle[0].used_at_ms > MAX_IDLE_S:
            old.append(self._idle.popleft())
        return old

    def _is_young(self, pipeline: PipelinedConnection) -> bool:
        age_s = time.monotonic() - pipeline.made_at
        return age_s < MAX_LIFETIME_S * (1 - 0.1 * self._random.random())


def to_driver_connection(pipeline: PipelinedConnection) -> psycopg.Connection[tuple[object, ...]]:
    """The driver's connection, ready for its own cursors. Raises StorageUnavailable."""
    with suppress(StatementFailed):
        pipeline.drain()
        return pipeline.connection
    raise StorageUnavailable("PostgreSQL: the connection was lost")
