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
from collections.abc import Callable
from typing import Protocol

_log = logging.getLogger("payments_core_http")


class Task(Protocol):
    """A connection with a request that is whole."""

    @property
    def path(self) -> str | None:
        """The path of the request; None where it is no valid request."""

    def service(self) -> None:
        """Answer it."""

    def cancel(self) -> None:
        """It will not be answered."""


TaskQueue = queue.SimpleQueue[Task | None]


class ThreadPool:
    """Answers tasks in the order they came, so many at a time.

    Requests for `reserved_paths` have one thread more, to themselves: a liveness check must be
    answered while all others are busy.
    """

    def __init__(self, threads: int, reserved_paths: frozenset[str] = frozenset()) -> None:
        self._tasks: TaskQueue = queue.SimpleQueue()
        self._reserved: TaskQueue = queue.SimpleQueue()
        self._reserved_paths = reserved_paths
        self.add_task: Callable[[Task], None] = self._tasks.put
        """From any thread."""
        self._threads = [
            self._start_thread(self._tasks, f"http-{number}") for number in range(threads)
        ]
        if reserved_paths:
            self.add_task = self._add_by_path
            self._threads.append(self._start_thread(self._reserved, "http-reserved"))

    def _start_thread(self, tasks: TaskQueue, name: str) -> threading.Thread:
        thread = threading.Thread(target=self._run, args=(tasks,), name=name, daemon=True)
        thread.start()
        return thread

    def _add_by_path(self, task: Task) -> None:
        (self._reserved if task.path in self._reserved_paths else self._tasks).put(task)

    def _run(self, tasks: TaskQueue) -> None:
        while (task := tasks.get()) is not None:
            try:
                task.service()
            except BaseException:
                _log.exception("A request could not be answered")

    def shutdown(self, timeout_s: float) -> None:
        """Let the threads end, and cancel what none of them has begun by then."""
        for tasks in (self._tasks, self._reserved):
            for _ in self._threads:
                tasks.put(None)
        deadline = time.monotonic() + timeout_s
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        for tasks in (self._tasks, self._reserved):
            _cancel_all(tasks)


def _cancel_all(tasks: TaskQueue) -> None:
    unended = 0
    with contextlib.suppress(queue.Empty):  # a late thread takes from the same queue
        while True:
            task = tasks.get_nowait()
            if task is None:
                unended += 1
            else:
                task.cancel()
    for _ in range(unended):  # for those that come back yet
        tasks.put(None)
