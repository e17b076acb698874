"""The threads that answer, and how many of them at once.

A request that works holds the interpreter lock, and gives it up at each statement of SQLite. Eight
that work then take it from one another some twenty times in each request, which costs as much as
the request. Eight that wait, for a disk, a database or a chain, cost nothing. So as many threads
take requests as there are, until they are seen to work together: then one less, and again, down to
one; and one more wherever requests wait while the processor does not work.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable
from math import ceil
from typing import Protocol

from payments_core_http.server.turns import Turns

LOOK_S = 0.005
"""How often that is looked at, while requests run together or wait for a thread."""
BUSY_SHARE = 0.6
"""A process that took so much of a processor since the last look was working. One interpreter lock
makes it one processor; what is missing to that went for handing it over."""
STEP_DOWN = 0.25
"""A look at work takes away so much of a thread, and one at waiting gives a whole one: a request
that waits behind others that wait loses more than a few hand-overs cost."""
LEAST_STEP_DOWN = 0.005
STEP_GROWTH = 1.02
"""Where a thread that was taken away is missed, so that nothing is begun, as beside requests that
wait for a chain, the step is halved; each look at work makes it longer again."""
STALLED_S = 0.02
"""Where nothing was begun for so long, one more may begin, whatever the processor does."""

BoolQueue = queue.SimpleQueue[bool]

_log = logging.getLogger("payments_core_http")


class Task(Protocol):
    """A connection with a request that is whole."""

    @property
    def path(self) -> str | None:
        """The path of the request; None where it is no valid request."""

    @property
    def caller(self) -> str:
        """Whose it is: callers take turns."""

    def service(self) -> None:
        """Answer it."""

    def cancel(self) -> None:
        """It will not be answered."""


class ThreadPool:
    """Answers tasks, each caller's in the order they came, at most so many at a time.

    Requests for `reserved_paths` have one thread more, to themselves: a liveness check must be
    answered while all others are busy.
    """

    def __init__(
        self,
        threads: int,
        reserved_paths: frozenset[str] = frozenset(),
        processor_s: Callable[[], float] = time.process_time,
    ) -> None:
        """`processor_s` tells what this process has taken of the processor so far."""
        self._reserved_paths = reserved_paths
        self._workers = Workers(threads, "http", processor_s)
        self._reserved = Workers(1, "http-reserved", processor_s) if reserved_paths else None

    def add_task(self, task: Task) -> None:
        """Have it answered; from any thread."""
        if self._reserved is not None and task.path in self._reserved_paths:
            self._reserved.add(task)
        else:
            self._workers.add(task)

    def shutdown(self, timeout_s: float) -> None:
        """Let the threads end, and cancel what none of them has begun by then."""
        deadline = time.monotonic() + timeout_s
        all_workers = [one for one in (self._workers, self._reserved) if one is not None]
        for workers in all_workers:
            workers.end()
        for workers in all_workers:
            workers.join(deadline)


class Workers:
    """Threads that answer one queue of tasks."""

    def __init__(self, threads: int, name: str, processor_s: Callable[[], float]) -> None:
        self._most = threads
        self._processor_s = processor_s
        self._allowed = float(threads)
        """So many may run, and one more for a part of one."""
        self._step_down = STEP_DOWN
        self._running = 0
        self._tasks: Turns[Task] = Turns()
        self._began_at = time.monotonic()
        """When a thread last took a task."""
        self._is_watched = False
        self._lock = threading.Lock()
        """Of all above."""
        self._starts: BoolQueue = queue.SimpleQueue()
        """A thread that gets True from it runs, and one that gets False ends. It is no Python code:
        a condition is a tenth of what a small request costs."""
        self._looks: BoolQueue = queue.SimpleQueue()
        """The same for the thread that looks at the others."""
        self._threads = [
            threading.Thread(target=self._run, name=f"{name}-{number}", daemon=True)
            for number in range(threads)
        ]
        if threads > 1:
            watching = threading.Thread(target=self._watch, name=f"{name}-watch", daemon=True)
            self._threads.append(watching)
        for thread in self._threads:
            thread.start()

    def add(self, task: Task) -> None:
        """Have a thread answer it, as soon as one may."""
        caller = task.caller
        with self._lock:
            self._tasks.append(caller, task)
            starts = self._count_start()
            is_contended = self._running > 1 or not starts
            looks = is_contended and not self._is_watched and self._most > 1
            self._is_watched |= looks
        if starts:
            self._starts.put(True)
        if looks:
            self._looks.put(True)

    def end(self) -> None:
        """Let the threads end once nothing is left to do; all that there are help with it."""
        with self._lock:
            self._allowed = float(self._most)
            starts = sum(self._count_start() for _ in range(len(self._tasks)))
        for _ in range(starts):
            self._starts.put(True)
        for _ in range(self._most):
            self._starts.put(False)
        self._looks.put(False)

    def join(self, deadline: float) -> None:
        """Wait for the threads until then, and cancel what none of them has begun."""
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        with self._lock:
            left = self._tasks.take_all()
        for task in left:
            task.cancel()

    def _count_start(self) -> bool:
        """Count one more thread as running, where one may; the lock is held."""
        if self._running >= ceil(self._allowed):
            return False
        self._running += 1
        return True

    def _run(self) -> None:
        while self._starts.get():
            while (task := self._take()) is not None:
                try:
                    task.service()
                except BaseException:
                    _log.exception("A request could not be answered")

    def _take(self) -> Task | None:
        """The next task. None where the thread is to rest: another one that runs goes on."""
        with self._lock:
            if self._tasks and self._running <= ceil(self._allowed):
                self._began_at = time.monotonic()
                return self._tasks.take()
            self._running -= 1
            return None

    def _watch(self) -> None:
        while self._looks.get():
            looks = True
            while looks:
                began, spent = time.monotonic(), self._processor_s()
                time.sleep(LOOK_S)
                now = time.monotonic()
                is_working = self._processor_s() - spent > BUSY_SHARE * (now - began)
                looks = self._adjust(is_working, began, now)

    def _adjust(self, is_working: bool, began: float, now: float) -> bool:
        """Allow more or fewer threads to run, after a look from `began` to `now`; whether there is
        reason to look again."""
        with self._lock:
            if self._running < 2 and not self._tasks:
                self._is_watched = False
                return False
            is_stalled = bool(self._tasks) and now - self._began_at > STALLED_S
            if self._tasks and (is_stalled or not is_working):
                self._allowed = min(ceil(self._allowed) + 1.0, float(self._most))
                if self._began_at < began:
                    self._step_down = max(self._step_down / 2, LEAST_STEP_DOWN)
            elif is_working:
                together = min(self._allowed, self._running)
                self._allowed = max(together - self._step_down, 1.0)
                self._step_down = min(self._step_down * STEP_GROWTH, STEP_DOWN)
            starts = bool(self._tasks) and self._count_start()
        if starts:
            self._starts.put(True)
        return True
