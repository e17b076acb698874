"""The threads that answer: a fixed number of them, and a queue that is not Python's own code.

Waitress's queue takes two locks and a condition in Python for every request, which is a tenth of
what a small one costs.
"""

from __future__ import annotations

import contextlib
import logging
import queue
import threading
import time
from typing import Protocol

_log = logging.getLogger("payments_core_http")


class Task(Protocol):
    """A connection with a request that is whole."""

    def service(self) -> None:
        """Answer it."""

    def cancel(self) -> None:
        """It will not be answered."""


class ThreadPool:
    """Answers tasks in the order they came, so many at a time."""

    def __init__(self, threads: int) -> None:
        self._tasks: queue.SimpleQueue[Task | None] = queue.SimpleQueue()
        self.add_task = self._tasks.put
        """From any thread."""
        self._threads = [
            threading.Thread(target=self._run, name=f"http-{n}", daemon=True)
            for n in range(threads)
        ]
        for thread in self._threads:
            thread.start()

    def _run(self) -> None:
        while (task := self._tasks.get()) is not None:
            try:
                task.service()
            except BaseException:
                _log.exception("A request could not be answered")

    def shutdown(self, timeout_s: float) -> None:
        """Let the threads end, and cancel what none of them has begun by then."""
        for _ in self._threads:
            self._tasks.put(None)
        deadline = time.monotonic() + timeout_s
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        unended = 0
        with contextlib.suppress(queue.Empty):  # a late thread takes from the same queue
            while True:
                task = self._tasks.get_nowait()
                if task is None:
                    unended += 1
                else:
                    task.cancel()
        for _ in range(unended):  # for those that come back yet
            self._tasks.put(None)
