"""The threads that answer, how many of them at once, and which of them attends to the sockets.

A request that works holds the interpreter lock, and gives it up at each statement of SQLite. Eight
that work then take it from one another some twenty times in each request, which costs as much as
the request. Eight that wait, for a disk, a database or a chain, cost nothing. So one thread takes
requests, and one more wherever requests wait while the processor does not work; where several are
seen to work together, one less, and again, down to one.

No thread is the server's loop for ever. The one that attends to the sockets takes a request that
came and answers it itself, since to hand it to another thread and back costs as much as a quick
request. While several may answer, it wakes another one to attend in its place. While one may, the
sockets wait for it; where its answer takes longer than `LOOK_S`, another one attends.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from math import ceil
from typing import Protocol

from payments_core_http.server.signal_safety import receive
from payments_core_http.server.turns import Turns

LOOK_S = 0.005
"""How often the threads are looked at, while there are requests."""
IDLE_LOOKS = 200
"""So many looks without a request end the looking: to begin again costs a request."""
ATTEND_S = 0.001
"""How long a thread answers one request after the other before it attends to the sockets again."""
WAIT_S = 0.5
"""How long it waits for the sockets at most; they are asked for what is late after that."""
BUSY_SHARE = 0.6
"""A process that took so much of a processor since the last look was working. One interpreter lock
makes it one processor; what is missing to that went for handing it over."""
STEP_DOWN = 0.25
"""A look at work takes away so much of a thread, and one at waiting gives a whole one: a request
that waits behind others that wait loses more than a few hand-overs cost."""
MIN_STEP_DOWN = 0.005
STEP_GROWTH = 1.02
"""Where a thread that was taken away is missed, so that nothing is begun, as beside requests that
wait for a chain, the step is halved; each look at work makes it longer again."""
STALLED_S = 0.02
"""Where nothing was begun for so long, one more may begin, whatever the processor does."""

Attend = Callable[[float], None]
"""Receives and sends what sockets are ready for, after waiting so many seconds for one at most."""
BoolQueue = queue.SimpleQueue[bool]
"""It is no Python code: a condition is a tenth of what a small request costs."""

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

    Requests for `reserved_paths` are answered before all others and beside them, by the thread that
    has read them: a liveness check must be answered while all others are busy. They must not wait.
    """

    def __init__(
        self,
        threads: int,
        reserved_paths: frozenset[str] = frozenset(),
        processor_s: Callable[[], float] = time.process_time,
    ) -> None:
        """`processor_s` tells what this process has taken of the processor so far."""
        self._most = threads
        self._reserved_paths = reserved_paths
        self._processor_s = processor_s
        self._lock = threading.Lock()
        """Of all below that changes."""
        self._tasks: Turns[Task] = Turns()
        self._reserved: deque[Task] = deque()
        self._allowed = 1.0
        """So many may answer, and one more for a part of one."""
        self._step_down = STEP_DOWN
        self._answering = 0
        self._resting = threads + 1  # one attends while all others answer
        """Threads that nobody has woken."""
        self._began_at = time.monotonic()
        """When a thread last took a task."""
        self._attend: Attend | None = None
        self._is_attended = self._is_stopping = self._is_ending = False
        self._attended_at = 0.0
        """When a thread last came back from the sockets."""
        self._is_watched = False
        self._wakes: BoolQueue = queue.SimpleQueue()
        """A thread that gets True from it goes on, and one that gets False ends."""
        self._looks: BoolQueue = queue.SimpleQueue()
        """The same for the thread that looks at the others."""
        self._stops: queue.SimpleQueue[BaseException | None] = queue.SimpleQueue()
        """Why the sockets are to be left."""
        self._left: queue.SimpleQueue[None] = queue.SimpleQueue()
        """They were."""
        self._threads = [
            threading.Thread(target=self._run, name=f"http-{number}", daemon=True)
            for number in range(self._resting)
        ]
        self._threads.append(threading.Thread(target=self._watch, name="http-watch", daemon=True))
        for thread in self._threads:
            thread.start()

    def attend(self, attend: Attend) -> None:
        """Have the threads attend to the sockets until `stop`; raises what `attend` raises.

        Nobody attends to them any more when it returns. Tasks are answered as before.
        """
        with self._lock:
            if self._is_stopping:
                return
            self._attend = attend
            self._wake()
        error = receive(self._stops)
        with self._lock:
            self._attend = None
            is_attended = self._is_attended
        if is_attended:
            self._left.get()
        with self._lock:
            self._wake_for_tasks()
        if error is not None:
            raise error

    def stop(self) -> None:
        """Let `attend` return, once nothing is waited for; from a signal handler too."""
        self._is_stopping = True
        self._stops.put(None)

    def add_task(self, task: Task) -> None:
        """Have it answered; from any thread."""
        is_reserved = bool(self._reserved_paths) and task.path in self._reserved_paths
        caller = task.caller
        with self._lock:
            if is_reserved:
                self._reserved.append(task)
            else:
                self._tasks.append(caller, task)
            if self._attend is None:  # otherwise a thread that adds one chooses what is next
                self._wake_for_tasks()

    def shutdown(self, timeout_s: float) -> None:
        """Let the threads end, and cancel what none of them has begun by then."""
        deadline = time.monotonic() + timeout_s
        with self._lock:
            self._is_ending = True
            self._allowed = float(self._most)
            self._wake_for_tasks()
        for _ in range(self._most + 1):
            self._wakes.put(False)
        self._looks.put(False)
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        with self._lock:
            left = [*self._reserved, *self._tasks.take_all()]
            self._reserved.clear()
        for task in left:
            task.cancel()

    def _run(self) -> None:
        while self._wakes.get():
            while (go_on := self._choose()) is not None:
                go_on()

    def _choose(self) -> Callable[[], None] | None:
        """What the thread does next. None where it is to rest: another one goes on."""
        with self._lock:
            if self._reserved:
                return partial(_answer, self._reserved.popleft())
            now = time.monotonic()
            is_free = not (self._is_attended or self._is_stopping or self._attend is None)
            is_due = now - self._attended_at >= ATTEND_S
            may_answer = bool(self._tasks) and self._may_answer()
            if may_answer and not (is_free and is_due):
                return partial(self._answer, self._take(now))
            # What it has read and may not answer is for the one that answers, which attends then.
            if is_free and (is_due or not self._tasks):
                self._is_attended = True
                return partial(self._attend_once, 0.0 if may_answer else WAIT_S)
            self._resting += 1
            return None

    def _may_answer(self) -> bool:
        return self._answering < ceil(self._allowed)

    def _take(self, now: float) -> Task:
        self._answering += 1
        self._began_at = now
        task = self._tasks.take()
        is_unattended = self._attend is not None and not self._is_attended
        if self._may_answer() and (self._tasks or is_unattended):
            self._wake()
        if not self._is_watched:
            self._is_watched = True
            self._looks.put(True)
        return task

    def _answer(self, task: Task) -> None:
        _answer(task)
        with self._lock:
            self._answering -= 1

    def _attend_once(self, wait_s: float) -> None:
        error = None
        try:
            if (attend := self._attend) is not None:
                attend(wait_s)
        except BaseException as raised:
            error = raised
        with self._lock:
            self._is_attended, self._attended_at = False, time.monotonic()
            if self._attend is None:
                self._left.put(None)
            elif error is not None:
                self._attend = None
                self._stops.put(error)

    def _wake(self) -> None:
        """Wake a thread, where one rests; the lock is held."""
        if self._resting:
            self._resting -= 1
            self._wakes.put(True)

    def _wake_for_tasks(self) -> None:
        """Wake as many as may answer; the lock is held."""
        free = ceil(self._allowed) - self._answering
        for _ in range(len(self._reserved) + min(len(self._tasks), free)):
            self._wake()

    def _watch(self) -> None:
        while self._looks.get():
            idle = 0
            while not self._is_ending and (idle < IDLE_LOOKS or not self._stop_watching()):
                began, spent = time.monotonic(), self._processor_s()
                time.sleep(LOOK_S)
                now = time.monotonic()
                is_working = self._processor_s() - spent > BUSY_SHARE * (now - began)
                with self._lock:
                    self._adjust(is_working, began, now)
                    idle = 0 if self._tasks or self._answering else idle + 1

    def _stop_watching(self) -> bool:
        with self._lock:
            self._is_watched = bool(self._tasks or self._answering)
            return not self._is_watched

    def _adjust(self, is_working: bool, began: float, now: float) -> None:
        """Allow more or fewer threads to answer, after a look from `began` to `now`, and wake one
        where it is missed; the lock is held."""
        is_stalled = now - self._began_at > STALLED_S
        if self._tasks and (is_stalled or not is_working):
            self._allowed = min(ceil(self._allowed) + 1.0, float(self._most))
            if self._began_at < began:
                self._step_down = max(self._step_down / 2, MIN_STEP_DOWN)
        elif is_working:
            together = min(self._allowed, self._answering)
            self._allowed = max(together - self._step_down, 1.0)
            self._step_down = min(self._step_down * STEP_GROWTH, STEP_DOWN)
        is_left = not self._is_attended and now - self._attended_at > LOOK_S
        if (self._tasks and self._may_answer()) or (self._attend is not None and is_left):
            self._wake()


def _answer(task: Task) -> None:
    try:
        task.service()
    except BaseException:
        _log.exception("A request could not be answered")
