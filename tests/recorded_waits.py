"""A server that records which of its threads wait, as `payments_core/waiting.py` asks."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

from payments_core.waiting import Gate, closed_lock

T = TypeVar("T")
DEADLINE_S = 30


class RecordedWaits:
    """Where threads that `start` began announce their waits, none within another."""

    def __init__(self) -> None:
        self._begun: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._instead: dict[int, Callable[[], Any]] = {}
        self._now: set[int] = set()

    def start(self, task: Callable[[], T], instead: Callable[[], Any] | None = None) -> Future[T]:
        """Begin a task; `instead` is called when it announces a wait, and may stop it."""

        def run() -> T:
            self._instead[threading.get_ident()] = instead or (lambda: None)
            return task()

        return ThreadPoolExecutor(1).submit(run)

    def expect(self) -> None:
        """Wait until one more thread has announced a wait."""
        self._begun.get(timeout=DEADLINE_S)

    @property
    def waiting(self) -> int:
        """How many threads wait."""
        return len(self._now)

    @contextmanager
    def announce(self) -> Iterator[None]:
        """See `Waits`."""
        thread = threading.get_ident()
        if thread not in self._instead:
            yield
            return
        assert thread not in self._now
        self._now.add(thread)
        self._begun.put(thread)
        try:
            self._instead[thread]()
            yield
        finally:
            self._now.remove(thread)

    def gather(self) -> None:
        """Nothing else could begin."""

    def new_gate(self) -> Gate:
        """Only a lock."""
        return closed_lock()
