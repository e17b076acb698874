"""A pool that records whether its only thread waits, as `payments_core/waiting.py` asks."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

from payments_core.waiting import Turn, held_lock, set_current_pool

T = TypeVar("T")
DEADLINE_S = 30


class WaitingPool:
    """Runs one task in a thread. `waits` is set while it waits; it must not wait within a wait.

    `instead` is called in place of what waits.
    """

    def __init__(self, instead: Callable[[], Any] | None = None) -> None:
        self._instead = instead
        self.waits = threading.Event()
        self._thread = ThreadPoolExecutor(1, initializer=set_current_pool, initargs=(self,))

    def start(self, task: Callable[[], T]) -> Future[T]:
        """Begin a task; its result is for the test to get."""
        return self._thread.submit(task)

    def gather(self) -> None:
        """Nothing else could begin."""

    def new_turn(self) -> Turn:
        """Only a lock."""
        return held_lock()

    def wait(self, wait: Callable[[], T]) -> T:
        """See `payments_core/waiting.py`."""
        assert not self.waits.is_set()
        self.waits.set()
        try:
            return wait() if self._instead is None else self._instead()
        finally:
            self.waits.clear()
