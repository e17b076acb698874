"""How many requests may wait for others at the same time: chains, providers, name servers.

What hangs holds who asks it until the time is up. Were every thread that answers requests allowed
to ask, one tenant's requests would stop the requests of all.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from payments_core.errors import DependencyFailed

Dependency = Literal["chain", "kyc", "pricing", "router", "names"]

WAIT_S = 0.1
"""So long a request waits for its turn: what is well answers sooner."""

MAX_WAITING = 2
"""So many requests wait for a turn; the others are refused at once."""


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
        self._limit = limit
        self._limit_of_dependency = max(1, limit - 1)
        self._limit_of_environment = max(1, limit - 2)
        self._changed = threading.Condition()
        self._running: Counter[tuple[str, ...]] = Counter()
        self.waiting = 0
        """How many requests wait for a turn."""

    @contextmanager
    def acquire(
        self, dependency: Dependency, environment_id: str, *, wait_s: float = WAIT_S
    ) -> Iterator[None]:
        """Take a place for the time of the block. Raises DependencyFailed where there is none."""
        keys = ((), (dependency,), (dependency, environment_id))
        with self._changed:
            if not self._has_room(*keys) and not self._wait_for_room(keys, wait_s):
                busy = TooManyCalls(f"too many requests wait for {dependency} at this time")
                raise DependencyFailed(dependency) from busy
            self._running.update(keys)
        try:
            yield
        finally:
            with self._changed:
                self._running.subtract(keys)
                self._running += Counter()  # without those that have none
                self._changed.notify_all()

    def _has_room(
        self, everybody: tuple[str, ...], dependency: tuple[str, ...], share: tuple[str, ...]
    ) -> bool:
        return (
            self._running[everybody] < self._limit
            and self._running[dependency] < self._limit_of_dependency
            and self._running[share] < self._limit_of_environment
        )

    def _wait_for_room(self, keys: tuple[tuple[str, ...], ...], wait_s: float) -> bool:
        if wait_s <= 0 or self.waiting >= MAX_WAITING:
            return False
        self.waiting += 1
        try:
            return self._changed.wait_for(lambda: self._has_room(*keys), wait_s)
        finally:
            self.waiting -= 1
