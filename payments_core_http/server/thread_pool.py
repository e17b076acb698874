"""The threads that answer: one computes at a time, and one of them attends to the sockets.

A request that computes holds the interpreter lock, and releases it at each statement of SQLite. If
eight requests compute, they take it from one another some twenty times in each request, which costs
as much as the request. Eight that wait, for a disk, a database or a chain, cost nothing. So one
thread computes. A thread that announces a wait, as for a commit that several share, lets another
begin at once. If nothing began for `STALLED_S`, the thread that computes counts as waiting until
its answer is made: its wait was not announced, or it computes for long.

No thread is the server's loop permanently. The thread that attends to the sockets answers a request
that it has read itself, since a hand-over to another thread and back costs as much as a quick
request. The sockets wait for it meanwhile; if it waits, or has stalled, another thread attends.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from threading import get_ident
from typing import Protocol

from payments_core_http.server.signal_safety import receive
from payments_core_http.server.turns import Turns

STALLED_S = 0.02
"""How long nothing must begin before one more thread may compute."""
IDLE_LOOKS = 50
"""After so many looks without a request the looks end: to begin them again costs a request."""
ATTEND_S = 0.004
"""How long a thread answers one request after the other before it attends to the sockets again."""
WAIT_S = 0.5
"""How long it waits for the sockets at most; after that, timeouts are checked."""
GATHER_S = 0.005
"""How long a request lets others begin that may share its commit."""

Attend = Callable[[float], None]
"""Receives and sends on the sockets that are ready, after waiting at most so many seconds."""
BoolQueue = queue.SimpleQueue[bool]
"""It is written in C: a condition would cost a tenth of a small request."""

_NOTHING = nullcontext()
_log = logging.getLogger(__name__)


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
    """Answers tasks, each caller's in order of arrival; at most `threads` have begun at a time.

    Requests for `reserved_paths` are answered before all others and in addition to them, by the
    thread that has read them: a liveness check must be answered while all others are busy. They
    must not block.

    `announce`, `gather` and `new_gate` are for what a task calls. In a thread that does not compute
    for a task they do nothing, so that code need not know who runs it.
    """

    def __init__(self, threads: int, reserved_paths: frozenset[str] = frozenset()) -> None:
        self._most = threads
        self._reserved_paths = reserved_paths
        self._lock = threading.Lock()
        """Guards all mutable fields below."""
        self._tasks: Turns[Task] = Turns()
        self._writing_tasks = 0
        """How many of them may write."""
        self._reserved: deque[Task] = deque()
        self._begun: set[int] = set()
        """The threads whose task has begun."""
        self._computing: int | None = None
        """The one of these that computes; the others wait, or have stalled."""
        self._gathering: list[_Gate] = []
        """One of each thread that gathers others; it moves to `_returning`."""
        self._returning: deque[_Gate] = deque()
        """One of each thread whose wait has ended; its thread continues when it is opened."""
        self._resting = threads + 1  # one attends while all others answer
        """Threads that wait to be woken."""
        self._begins = 0
        """How often a task began or continued."""
        self._attend: Attend | None = None
        self._is_attended = self._is_stopping = self._is_ending = False
        self._attended_at = 0.0
        """When a thread last came back from the sockets."""
        self._is_watched = False
        self._wakes: BoolQueue = queue.SimpleQueue()
        """A thread that gets True from it continues, and one that gets False ends."""
        self._looks: BoolQueue = queue.SimpleQueue()
        """The same for the thread that looks whether the others have stalled."""
        self._stops: queue.SimpleQueue[BaseException | None] = queue.SimpleQueue()
        """The reason to stop attending to the sockets: an error, or None."""
        self._left: queue.SimpleQueue[None] = queue.SimpleQueue()
        """Signals that the last thread has stopped attending to them."""
        self._threads = [
            threading.Thread(target=self._run, name=f"http-{number}", daemon=True)
            for number in range(self._resting)
        ]
        self._threads.append(threading.Thread(target=self._watch, name="http-watch", daemon=True))

    def start(self) -> None:
        """Start the threads; `attend` does it, if this was not called before."""
        if not self._threads[0].ident:
            for thread in self._threads:
                thread.start()

    def attend(self, attend: Attend) -> None:
        """Have the threads attend to the sockets until `stop`; raises what `attend` raises.

        Nobody attends to them any more when it returns. Tasks are answered as before.
        """
        self.start()
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
        """Let tasks begin until none that may write can; return then, or after `GATHER_S`."""
        with self._lock:
            if self._computing != get_ident() or not self._can_gather():
                return
            gate = _Gate(self)
            self._gathering.append(gate)
        self._begin_wait()
        if not gate.lock.acquire(timeout=GATHER_S):
            with self._lock:
                if gate in self._gathering:
                    self._gathering.remove(gate)
                    self._returning.append(gate)
                    self._let_others_continue()
            gate.lock.acquire()

    def new_gate(self) -> _Gate | threading.Lock:
        """What this thread is going to wait for, once."""
        return _Gate(self) if self._computing == get_ident() else _closed_lock()

    def announce(self) -> AbstractContextManager[None]:
        """The thread waits during the block; another task may begin meanwhile."""
        return _Gate(self) if self._computing == get_ident() else _NOTHING

    def _begin_wait(self) -> None:
        """Let another thread compute instead of this one, which is going to wait."""
        with self._lock:
            if self._computing == get_ident():
                self._computing = None
            if not self._let_others_continue() and (self._tasks or not self._is_attended):
                self._wake()

    def shutdown(self, timeout_s: float) -> None:
        """Let the threads end, and cancel the tasks that none of them has begun by then."""
        deadline = time.monotonic() + timeout_s
        with self._lock:
            self._is_ending = True
            self._wake_for_tasks()
        for _ in range(self._most + 1):
            self._wakes.put(False)
        self._looks.put(False)
        for thread in self._threads:
            if thread.ident:
                thread.join(max(0.0, deadline - time.monotonic()))
        with self._lock:
            left = [*self._reserved, *self._tasks.take_all()]
            self._reserved.clear()
        for task in left:
            task.cancel()

    def _run(self) -> None:
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
            is_free = not (self._is_attended or self._is_stopping or self._attend is None)
            is_due = time.monotonic() - self._attended_at >= ATTEND_S
            may_answer = bool(self._tasks) and self._may_begin()
            if may_answer and not (is_free and is_due):
                return partial(self._answer, self._take())
            # A task that it has read and may not answer is for the thread that answers, which then
            # attends.
            if is_free and (is_due or not self._tasks):
                self._is_attended = True
                return partial(self._attend_once, 0.0 if may_answer else WAIT_S)
            self._resting += 1
            return None

    def _may_begin(self) -> bool:
        """Whether one more task may begin; the lock is held."""
        return self._may_compute() and len(self._begun) < self._most

    def _may_compute(self) -> bool:
        return self._computing is None or self._is_ending

    def _can_gather(self) -> bool:
        """Whether a task that may write could begin if all that have begun waited; the lock is
        held."""
        return self._writing_tasks > 0 and len(self._begun) < self._most

    def _take(self) -> Task:
        self._begun.add(get_ident())
        self._compute(get_ident())
        task = self._tasks.take()
        self._writing_tasks -= task.may_write
        if not self._is_watched:
            self._is_watched = True
            self._looks.put(True)
        return task

    def _compute(self, thread: int) -> None:
        self._computing = thread
        self._begins += 1

    def _answer(self, task: Task) -> None:
        _answer(task)
        with self._lock:
            self._begun.discard(get_ident())
            if self._computing == get_ident():
                self._computing = None

    def _let_others_continue(self) -> bool:
        """Whether one that has waited continues now, before other tasks begin; the lock is held."""
        if self._gathering and not self._can_gather():
            self._returning.extend(self._gathering)
            self._gathering.clear()
        if not (self._returning and self._may_compute()):
            return False
        gate = self._returning.popleft()
        self._compute(gate.thread)
        gate.lock.release()
        return True

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
        may_begin = len(self._tasks) if self._is_ending else bool(self._tasks and self._may_begin())
        for _ in range(len(self._reserved) + may_begin):
            self._wake()

    def _watch(self) -> None:
        while self._looks.get():
            idle = 0
            while not self._is_ending and (idle < IDLE_LOOKS or not self._stop_watching()):
                begins = self._begins
                time.sleep(STALLED_S)
                with self._lock:
                    if self._begins == begins:
                        self._help()
                    idle = 0 if self._is_busy() else idle + 1

    def _stop_watching(self) -> bool:
        with self._lock:
            self._is_watched = self._is_busy()
            return not self._is_watched

    def _is_busy(self) -> bool:
        return bool(self._tasks or self._begun)

    def _help(self) -> None:
        """Let one more thread compute and attend, since nothing began; the lock is held."""
        self._computing = None
        is_left = self._attend is not None and not self._is_attended
        if not self._let_others_continue() and (self._tasks or is_left):
            self._wake()


class _Gate:
    """Its thread is woken when it may compute, and not before."""

    def __init__(self, pool: ThreadPool) -> None:
        self._pool = pool
        self.thread = get_ident()
        self.lock = _closed_lock()

    def acquire(self) -> None:
        self._pool._begin_wait()
        self.lock.acquire()

    def __enter__(self) -> None:
        self._pool._begin_wait()

    def __exit__(self, *_: object) -> None:
        self.release()
        self.lock.acquire()

    def release(self) -> None:
        with self._pool._lock:
            self._pool._returning.append(self)
            self._pool._let_others_continue()


def _closed_lock() -> threading.Lock:
    lock = threading.Lock()
    lock.acquire()
    return lock


def _answer(task: Task) -> None:
    try:
        task.service()
    except BaseException:
        _log.exception("A request could not be answered")
