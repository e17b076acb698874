"""How many requests may wait for others at the same time: chains, providers, name servers.

What hangs holds who asks it until the time is up. Were every thread that answers requests allowed
to ask, one tenant's requests would stop the requests of all.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from payments_core.errors import DependencyFailed

Dependency = Literal["chain", "kyc", "pricing", "router", "names"]

WAIT_S = 0.1
"""So long a request waits for its turn: what is well answers sooner."""

SLOW_S = 0.1
"""Behind calls that have all taken so long, a wait for a turn is hardly worth it."""

MAX_WAITING = 2
"""So many requests wait behind slow calls; the others are refused at once."""

_Key = tuple[str, ...]


class TooManyCalls(Exception):
    """No place was free. Nobody was asked."""


class RemoteCalls:
    """So many requests at a time, all together. Threads share it.

    One place is kept from each dependency, for the others, and one more from each environment:
    what hangs for one of them leaves something to everybody else.
    """

    def __init__(self, limit: int) -> None:
        """Raises ValueError for a limit below 1."""
        if limit < 1:
            raise ValueError("at least one request must be able to call others")
        # Of all calls, of those to one dependency, and of those of one environment to it.
        self._limits = (limit, max(1, limit - 1), max(1, limit - 2))
        self._changed = threading.Condition()
        self._running: dict[object, tuple[tuple[_Key, ...], float]] = {}
        self.waiting: int = 0
        """How many requests wait for a turn."""

    @contextmanager
    def acquire(
        self, dependency: Dependency, environment_id: str, *, wait_s: float = WAIT_S
    ) -> Iterator[None]:
        """Take a place for the time of the block. Raises DependencyFailed where there is none."""
        keys: tuple[_Key, ...] = ((), (dependency,), (dependency, environment_id))
        call = object()
        with self._changed:
            if not self._has_room(keys) and not self._wait_for_room(keys, wait_s):
                busy = TooManyCalls(f"too many requests wait for {dependency} at this time")
                raise DependencyFailed(dependency) from busy
            self._running[call] = (keys, time.monotonic())
        try:
            yield
        finally:
            with self._changed:
                del self._running[call]
                self._changed.notify_all()

    def _has_room(self, keys: tuple[_Key, ...]) -> bool:
        return not any(True for _ in self._iter_full(keys))

    def _iter_full(self, keys: tuple[_Key, ...]) -> Iterator[list[float]]:
        """When the calls began that hold each place which is missing."""
        for key, limit in zip(keys, self._limits, strict=True):
            began = [began for held, began in self._running.values() if key in held]
            if len(began) >= limit:
                yield began

    def _wait_for_room(self, keys: tuple[_Key, ...], wait_s: float) -> bool:
        slow = time.monotonic() - SLOW_S
        is_stuck = any(max(began) <= slow for began in self._iter_full(keys))
        if wait_s <= 0 or (is_stuck and self.waiting >= MAX_WAITING):
            return False
        self.waiting += 1
        try:
            return self._changed.wait_for(lambda: self._has_room(keys), wait_s)
        finally:
            self.waiting -= 1
