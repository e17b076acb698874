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
from payments_core.evolve import evolve

Dependency = Literal["chain", "kyc", "pricing", "router", "names"]

WAIT_S = 0.1
"""How long a request waits for its turn: a healthy dependency answers sooner."""

SLOW_S = 0.1
"""After all calls have taken this long, waiting for a turn is hardly useful."""

MAX_WAITING = 2
"""The number of requests that wait behind slow calls; others are refused at once."""


class TooManyCalls(Exception):
    """No place was free. No call was made."""


class RemoteCalls:
    """A limit on concurrent requests, in total. Threads share it.

    One place is kept free of each dependency, for the others. An environment takes another place
    only while more are free than it has, in total and of the dependency: hanging calls of one leave
    half to the others, and those of two still leave a place to a third.
    """

    def __init__(self, limit: int) -> None:
        """Raises ValueError for a limit below 1."""
        if limit < 1:
            raise ValueError("at least one request must be able to call others")
        self._limit = limit
        self._limit_of_one = max(1, limit - 1)
        self._changed = threading.Condition()
        self._running: set[_Call] = set()
        self.waiting: int = 0
        """How many requests wait for a turn."""

    @contextmanager
    def acquire(
        self, dependency: Dependency, environment_id: str, *, wait_s: float = WAIT_S
    ) -> Iterator[None]:
        """Take a place for the time of the block. Raises DependencyFailed if there is none."""
        with self._changed:
            wanted = _Call(dependency, environment_id, time.monotonic())
            if not self._has_room(wanted) and not self._wait_for_room(wanted, wait_s):
                busy = TooManyCalls(f"too many requests wait for {dependency} at this time")
                raise DependencyFailed(dependency) from busy
            call = evolve(wanted, began=time.monotonic())
            self._running.add(call)
        try:
            yield
        finally:
            with self._changed:
                self._running.remove(call)
                self._changed.notify_all()

    def _has_room(self, wanted: _Call) -> bool:
        return not self._list_blocking(wanted)

    def _list_blocking(self, wanted: _Call) -> list[Collection[_Call]]:
        """If it has no place, the calls that must end first: its environment's, or all."""
        blocking: list[Collection[_Call]] = []
        same = {call for call in self._running if call.dependency == wanted.dependency}
        for held, limit in ((self._running, self._limit), (same, self._limit_of_one)):
            own = {call for call in held if call.environment_id == wanted.environment_id}
            if len(own) >= limit - len(held):
                blocking.append(own or held)
        return blocking

    def _wait_for_room(self, wanted: _Call, wait_s: float) -> bool:
        slow = time.monotonic() - SLOW_S
        is_stuck = any(
            all(call.began <= slow for call in calls) for calls in self._list_blocking(wanted)
        )
        if wait_s <= 0 or (is_stuck and self.waiting >= MAX_WAITING):
            return False
        self.waiting += 1
        try:
            return self._changed.wait_for(lambda: self._has_room(wanted), wait_s)
        finally:
            self.waiting -= 1


@attrs.frozen(eq=False)
class _Call:
    dependency: Dependency
    environment_id: str
    began: float
