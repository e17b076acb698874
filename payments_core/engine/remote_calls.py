"""A limit on requests that wait for chains, providers and name servers at the same time.

A hanging dependency holds its caller until the time-out. If every thread that answers requests were
allowed to wait, one tenant's requests would block those of all.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Literal

import attrs

from payments_core.errors import DependencyFailed
from payments_core.waiting import NO_WAITS, Waits, closed_lock

Dependency = Literal["chain", "kyc", "pricing", "router", "names"]

WAIT_S = 0.1
"""How long a request waits for its turn: a healthy dependency answers sooner."""

SLOW_S = 0.1
"""After all calls have taken this long, waiting for a turn is hardly useful."""

MAX_WAITING = 2
"""The number of requests that wait behind slow calls; others are refused at once."""


class TooManyCalls(Exception):
    """The call was not made, because no place was free."""


class RemoteCalls:
    """A limit on concurrent requests, in total. Threads share it.

    One place is kept free of each dependency, for the others. An environment takes another place
    only while more are free than it has, in total and of the dependency: hanging calls of one leave
    half to the others, and those of two still leave a place to a third.
    """

    def __init__(self, limit: int, waits: Waits = NO_WAITS) -> None:
        """Raises ValueError for a limit below 1."""
        if limit < 1:
            raise ValueError("at least one request must be able to call others")
        self._waits = waits
        self._limit = limit
        self._limit_of_one = max(1, limit - 1)
        self._lock = threading.Lock()
        """Guards the fields below, and when each call began."""
        self._running: set[_Call] = set()
        self._waiting: list[_Call] = []
        """In the order of their arrival."""

    @property
    def waiting(self) -> int:
        """How many requests wait for a turn."""
        return len(self._waiting)

    @contextmanager
    def acquire(
        self, dependency: Dependency, environment_id: str, *, wait_s: float = WAIT_S
    ) -> Iterator[None]:
        """Take a place for the time of the block. Raises DependencyFailed if there is none."""
        call = _Call(dependency, environment_id)
        with self._lock:
            waits = not self._begin(call)
            if waits and (wait_s <= 0 or self._is_hopeless(call)):
                raise _busy(dependency)
            if waits:
                self._waiting.append(call)
        try:
            with self._waits.announce():
                if waits:
                    call.turn.acquire(timeout=wait_s)
                    with self._lock:
                        if call not in self._running:
                            raise _busy(dependency)
                yield
        finally:
            with self._lock:
                self._end(call)

    def _begin(self, call: _Call) -> bool:
        """Give a call a place, if there is one."""
        if self._list_blocking(call):
            return False
        call.began = time.monotonic()
        self._running.add(call)
        return True

    def _end(self, call: _Call) -> None:
        """Take its place away, or let it wait no more, and begin those that have room now.

        Only these are woken: to wake all takes longer than a quick call.
        """
        if call not in self._running:
            self._waiting.remove(call)
            return
        self._running.remove(call)
        for other in [other for other in self._waiting if self._begin(other)]:
            self._waiting.remove(other)
            other.turn.release()

    def _list_blocking(self, wanted: _Call) -> list[Collection[_Call]]:
        """If it has no place, the calls that must end first: its environment's, or all."""
        blocking: list[Collection[_Call]] = []
        same = {call for call in self._running if call.dependency == wanted.dependency}
        for held, limit in ((self._running, self._limit), (same, self._limit_of_one)):
            own = {call for call in held if call.environment_id == wanted.environment_id}
            if len(own) >= limit - len(held):
                blocking.append(own or held)
        return blocking

    def _is_hopeless(self, wanted: _Call) -> bool:
        """Whether others wait already for calls that have all taken long."""
        slow = time.monotonic() - SLOW_S
        return len(self._waiting) >= MAX_WAITING and any(
            all(call.began <= slow for call in calls) for calls in self._list_blocking(wanted)
        )


@attrs.define(eq=False)
class _Call:
    dependency: Dependency
    environment_id: str
    began: float = attrs.field(default=0.0, init=False)
    """When it got its place, by the monotonic clock."""
    turn: threading.Lock = attrs.field(factory=closed_lock, init=False)
    """Released when it gets its place after it has waited."""


def _busy(dependency: Dependency) -> DependencyFailed:
    failed = DependencyFailed(dependency)
    failed.__cause__ = TooManyCalls(f"too many requests wait for {dependency} at this time")
    return failed
