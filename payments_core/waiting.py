"""What a thread tells the pool that runs it when it waits, so that another may run meanwhile.

A server lets its threads compute one at a time. It notices only after some milliseconds that one of
them waits, unless that one says so.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol, TypeVar

T = TypeVar("T")


class Turn(Protocol):
    """Something that one thread waits for, once, and another one ends."""

    def acquire(self) -> object:
        """Wait until the other thread has called `release`; another task may begin meanwhile."""

    def release(self) -> None:
        """End the wait of the thread that waits, or is going to."""


class Pool(Protocol):
    """Runs tasks, a few at a time, each in a thread."""

    def gather(self) -> None:
        """Let tasks begin until none that may write can; return then, or after some milliseconds.

        It is for a write that costs less together with those of other tasks.
        """

    def new_turn(self) -> Turn:
        """What this thread is going to wait for. It must hold no lock meanwhile, since it may have
        to wait for threads that compute, too."""

    def wait(self, wait: Callable[[], T]) -> T:
        """Call what waits; another task may begin meanwhile. It must hold no lock either."""


def held_lock() -> threading.Lock:
    """A new lock, which another thread releases."""
    lock = threading.Lock()
    lock.acquire()
    return lock


class _NoPool:
    """Of a thread that belongs to no pool."""

    def gather(self) -> None:
        """No task waits for this thread."""

    def new_turn(self) -> Turn:
        """Only a lock."""
        return held_lock()

    def wait(self, wait: Callable[[], T]) -> T:
        """Only call it."""
        return wait()


class _Current(threading.local):
    pool: Pool = _NoPool()


_current = _Current()


def current_pool() -> Pool:
    """The pool that runs this thread."""
    return _current.pool


def set_current_pool(pool: Pool) -> None:
    """Record which pool runs this thread, until the thread ends."""
    _current.pool = pool
