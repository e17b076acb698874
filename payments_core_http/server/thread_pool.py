"""The threads that answer, how many of them at once, and which of them attends to the sockets.

A request that computes holds the interpreter lock, and releases it at each statement of SQLite. If
eight requests compute, they take it from one another some twenty times in each request, which costs
as much as the request. Eight that wait, for a disk, a database or a chain, cost nothing. So one
thread answers requests, and another is added whenever requests wait while the processor is idle; if
several compute together, one is removed, again and again, down to one. A thread that says that it
waits (`payments_core/waiting.py`), as for a commit that several share, lets another begin at once.

No thread is the server's loop permanently. The thread that attends to the sockets answers a request
that it has read itself, since a hand-over to another thread and back costs as much as a quick
request. If several may answer, it wakes another thread to attend in its place. If only one may, the
sockets wait for it; if its answer takes longer than `LOOK_S`, or `MAX_LOOK_S` after quick answers,
another thread attends.
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
from typing import Protocol, TypeVar

from payments_core.waiting import held_lock, set_current_pool
from payments_core_http.server.processor_time import ProcessorTime
from payments_core_http.server.signal_safety import receive
from payments_core_http.server.turns import Turns

LOOK_S = 0.005
"""How often the threads are checked, while there are requests."""
MAX_LOOK_S = 0.02
"""How often while they compute quick answers: a check takes the interpreter lock from them."""
IDLE_LOOKS = 200
"""After so many checks without a request the checks end: to begin again costs a request."""
ATTEND_S = 0.004
"""How long a thread answers one request after the other before it attends to the sockets again."""
WAIT_S = 0.5
"""How long it waits for the sockets at most; after that, timeouts are checked."""
BUSY_SHARE = 0.6
"""A process that used this share of a processor since the last check was computing. One interpreter
lock limits it to one processor; hand-overs of the lock take the rest."""
STEP_DOWN = 0.25
"""A check that sees computing removes this part of a thread, and one that sees waiting adds a whole
thread: a request that waits behind waiting requests loses more than a few hand-overs cost."""
MIN_STEP_DOWN = 0.005
STEP_GROWTH = 1.02
"""If a removed thread is needed, because no request was begun (as when others wait for a chain),
the step is halved; each check that sees computing makes it longer again."""
STALLED_S = 0.02
"""If no request was begun for so long, one more may begin, even if the processor is busy."""
GATHER_S = 0.005
"""How long a request lets others begin that may share its commit."""

T = TypeVar("T")
Attend = Callable[[float], None]
"""Receives and sends on the sockets that are ready, after waiting at most so many seconds."""
BoolQueue = queue.SimpleQueue[bool]
"""It is written in C: a condition would cost a tenth of a small request."""

_log = logging.getLogger("payments_core_http")


class Task(Protocol):
    """A connection with a complete request."""

    @property
    def path(self) -> str | None:
        """The path of the request; None if the request is not valid."""

    @property
    def caller(self) -> str:
        """Its caller: callers take turns."""

    @property
    def may_write(self) -> bool:
        """Whether it may write, and so share the commit of another task."""

    def service(self) -> None:
        """Answer it."""

    def cancel(self) -> None:
        """Drop it without an answer."""


class ThreadPool:
    """Answers tasks, each caller's in order of arrival, at most `threads` at a time.

    Requests for `reserved_paths` are answered before all others and in addition to them, by the
    thread that has read them: a liveness check must be answered while all others are busy. They
    must not block.
    """

    def __init__(
        self,
        threads: int,
        reserved_paths: frozenset[str] = frozenset(),
        processor_s: Callable[[], float] | None = None,
    ) -> None:
        """`processor_s` returns the processor time that this process has used so far."""
        self._most = threads
        self._reserved_paths = reserved_paths
        self._lock = threading.Lock()
        """Guards all mutable fields below."""
        self._tasks: Turns[Task] = Turns()
        self._writing_tasks = 0
        """How many of them may write."""
        self._reserved: deque[Task] = deque()
        self._allowed = 1.0
        """How many threads may answer; a fraction allows one more."""
        self._step_down = STEP_DOWN
        self._answering = 0
        self._waiting = 0
        """Threads whose task has said that it waits; they are not counted as answering."""
        self._gathering: list[threading.Lock] = []
        """One of each thread that gathers others; it moves to `_returning`."""
        self._returning: deque[threading.Lock] = deque()
        """One of each thread whose wait has ended; its thread continues when it is released."""
        self._resting = threads + 1  # one attends while all others answer
        """Threads that wait to be woken."""
        self._began_at = time.monotonic()
        """When a thread last took a task."""
        self._attend: Attend | None = None
        self._is_attended = self._is_stopping = self._is_ending = False
        self._attended_at = 0.0
        """When a thread last came back from the sockets."""
        self._is_watched = False
        self._wakes: BoolQueue = queue.SimpleQueue()
        """A thread that gets True from it continues, and one that gets False ends."""
        self._looks: BoolQueue = queue.SimpleQueue()
        """The same for the thread that checks the others."""
        self._stops: queue.SimpleQueue[BaseException | None] = queue.SimpleQueue()
        """The reason to stop attending to the sockets: an error, or None."""
        self._left: queue.SimpleQueue[None] = queue.SimpleQueue()
        """Signals that the last thread has stopped attending to them."""
        self._threads = [
            threading.Thread(target=self._run, name=f"http-{number}", daemon=True)
            for number in range(self._resting)
        ]
        self._threads.append(threading.Thread(target=self._watch, name="http-watch", daemon=True))
        for thread in self._threads:
            thread.start()
        self._processor_s = processor_s or ProcessorTime(self._threads)

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
        """Let `attend` return, once no thread waits for the sockets; also from a signal handler."""
        self._is_stopping = True
        self._stops.put(None)

    def add_task(self, task: Task) -> None:
        """Queue a task to be answered; from any thread."""
        is_reserved = bool(self._reserved_paths) and task.path in self._reserved_paths
        caller, may_write = task.caller, task.may_write
        with self._lock:
            if is_reserved:
                self._reserved.append(task)
            else:
                self._tasks.append(caller, task)
                self._writing_tasks += may_write
            if self._attend is None:  # otherwise a thread that adds a task chooses what is next
                self._wake_for_tasks()

    def gather(self) -> None:
        """See `payments_core/waiting.py`; only from a task."""
        with self._lock:
            if not self._can_gather():
                return
            gate = held_lock()
            self._gathering.append(gate)
        self.begin_wait()
        if not gate.acquire(timeout=GATHER_S):
            with self._lock:
                if gate in self._gathering:
                    self._gathering.remove(gate)
                    self._returning.append(gate)
                    self._let_others_continue()
            gate.acquire()

    def new_turn(self) -> _Turn:
        """See `payments_core/waiting.py`; only from a task."""
        return _Turn(self)

    def wait(self, wait: Callable[[], T]) -> T:
        """See `payments_core/waiting.py`; only from a task."""
        turn = _Turn(self)
        self.begin_wait()
        try:
            return wait()
        finally:
            turn.release()
            turn.wait()

    def begin_wait(self) -> None:
        """Let another thread compute instead of this one, which is going to wait."""
        with self._lock:
            self._answering -= 1
            self._waiting += 1
            if not self._let_others_continue() and (self._tasks or not self._is_attended):
                self._wake()

    def end_wait(self, gate: threading.Lock) -> None:
        """Release the gate of a thread that waits, as soon as it may compute."""
        with self._lock:
            self._returning.append(gate)
            self._let_others_continue()

    def shutdown(self, timeout_s: float) -> None:
        """Let the threads end, and cancel the tasks that none of them has begun by then."""
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
        set_current_pool(self)
        while self._wakes.get():
            while (run := self._choose()) is not None:
                run()

    def _choose(self) -> Callable[[], None] | None:
        """What the thread does next. None if it is to rest: another one continues."""
        with self._lock:
            if self._reserved:
                return partial(_answer, self._reserved.popleft())
            if self._let_others_continue():
                self._resting += 1
                return None
            now = time.monotonic()
            is_free = not (self._is_attended or self._is_stopping or self._attend is None)
            is_due = now - self._attended_at >= ATTEND_S
            may_answer = bool(self._tasks) and self._may_answer()
            if may_answer and not (is_free and is_due):
                return partial(self._answer, self._take(now))
            # A task that it has read and may not answer is for the thread that answers, which then
            # attends.
            if is_free and (is_due or not self._tasks):
                self._is_attended = True
                return partial(self._attend_once, 0.0 if may_answer else WAIT_S)
            self._resting += 1
            return None

    def _may_answer(self) -> bool:
        """Whether one more thread may compute; the lock is held."""
        return self._free_threads() > 0

    def _free_threads(self) -> int:
        return min(ceil(self._allowed), self._most - self._waiting) - self._answering

    def _can_gather(self) -> bool:
        """Whether a task that may write could begin if all that have begun waited; the lock is
        held."""
        return self._writing_tasks > 0 and self._answering + self._waiting < self._most

    def _take(self, now: float) -> Task:
        self._answering += 1
        self._began_at = now
        task = self._tasks.take()
        self._writing_tasks -= task.may_write
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

    def _let_others_continue(self) -> bool:
        """Whether any that have waited continue now, before other tasks begin; the lock is held."""
        if self._gathering and not self._can_gather():
            self._returning.extend(self._gathering)
            self._gathering.clear()
        before = len(self._returning)
        while self._returning and self._answering < ceil(self._allowed):
            self._answering += 1
            self._waiting -= 1
            self._began_at = time.monotonic()
            self._returning.popleft().release()
        return len(self._returning) < before

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
        """Wake a resting thread, if there is one; the lock is held."""
        if self._resting:
            self._resting -= 1
            self._wakes.put(True)

    def _wake_for_tasks(self) -> None:
        """Wake as many threads as may answer; the lock is held."""
        self._let_others_continue()
        for _ in range(len(self._reserved) + min(len(self._tasks), self._free_threads())):
            self._wake()

    def _watch(self) -> None:
        while self._looks.get():
            idle, pause_s = 0, LOOK_S
            while not self._is_ending and (idle < IDLE_LOOKS or not self._stop_watching()):
                began, spent = time.monotonic(), self._processor_s()
                time.sleep(pause_s)
                now = time.monotonic()
                is_working = self._processor_s() - spent > BUSY_SHARE * (now - began)
                with self._lock:
                    self._adjust(is_working, began, now)
                    idle = 0 if self._is_busy() else idle + 1
                    is_quick = is_working and now - self._began_at < LOOK_S
                pause_s = min(2 * pause_s, MAX_LOOK_S) if is_quick else LOOK_S

    def _stop_watching(self) -> bool:
        with self._lock:
            self._is_watched = self._is_busy()
            return not self._is_watched

    def _is_busy(self) -> bool:
        return bool(self._tasks or self._answering or self._waiting)

    def _adjust(self, is_working: bool, began: float, now: float) -> None:
        """Allow more or fewer threads to answer, after a check from `began` to `now`, and wake a
        thread if one is needed; the lock is held."""
        is_stalled = now - self._began_at > STALLED_S
        if (self._tasks or self._returning) and (is_stalled or not is_working):
            self._allowed = min(ceil(self._allowed) + 1.0, float(self._most))
            if self._began_at < began:
                self._step_down = max(self._step_down / 2, MIN_STEP_DOWN)
        elif is_working:
            together = min(self._allowed, self._answering)
            self._allowed = max(together - self._step_down, 1.0)
            self._step_down = min(self._step_down * STEP_GROWTH, STEP_DOWN)
        self._let_others_continue()
        is_left = not self._is_attended and now - self._attended_at > LOOK_S
        if (self._tasks and self._may_answer()) or (self._attend is not None and is_left):
            self._wake()


class _Turn:
    """See `payments_core/waiting.py`. Its thread is woken when it may compute, and not before."""

    def __init__(self, pool: ThreadPool) -> None:
        self._pool = pool
        self._gate = held_lock()

    def acquire(self) -> None:
        self._pool.begin_wait()
        self.wait()

    def wait(self) -> None:
        """The same, if the pool knows already that the thread waits."""
        self._gate.acquire()

    def release(self) -> None:
        self._pool.end_wait(self._gate)


def _answer(task: Task) -> None:
    try:
        task.service()
    except BaseException:
        _log.exception("A request could not be answered")
