"""One answer of a chain, shared by all concurrent callers.

Callers that ask while it is read wait for that answer: a hundred concurrent requests cost a node
one query.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Generic, TypeVar

from payments_core.chains.port import ChainUnavailable
from payments_core.fork_safety import register_fork_reset

T = TypeVar("T")


class SharedRead(Generic[T]):
    """The result of `read` from less than `max_age_s` ago, or from now. Threads share it."""

    def __init__(
        self,
        read: Callable[[], T],
        max_age_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._read = read
        self._max_age_s = max_age_s
        self._clock = clock
        self._lock = threading.Lock()
        self._reading: Future[T] | None = None
        self._known: tuple[float, T] | None = None
        register_fork_reset(self)

    def reset_after_fork(self) -> None:
        """Start with a free lock: no thread of the child has it, and none is reading."""
        self._lock, self._reading = threading.Lock(), None

    def get(self) -> T:
        """The answer. Raises the errors of `read`; a failure is shared, but not cached."""
        with self._lock:
            now = self._clock()
            if self._known is not None and now - self._known[0] < self._max_age_s:
                return self._known[1]
            reading = self._reading
            if reading is None:
                own = self._reading = Future[T]()
        if reading is not None:
            return _wait(reading)
        try:
            answer = self._read()
        except BaseException as error:
            with self._lock:
                self._reading = None
            own.set_exception(error)
            raise
        with self._lock:
            # Its age counts from the query: the answer may be as old as that.
            self._known, self._reading = (now, answer), None
        own.set_result(answer)
        return answer


def _wait(reading: Future[T]) -> T:
    try:
        return reading.result()
    except ChainUnavailable as error:  # another thread's, whose traceback is its own
        raise ChainUnavailable(str(error)) from error
