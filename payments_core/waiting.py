"""The port by which code announces to a server that its thread waits: another may compute then.

A server lets its threads compute one at a time. It notices only after some milliseconds that one of
them waits, unless the wait is announced.
"""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol


class Gate(Protocol):
    """What one thread waits for, once, and another one ends."""

    def acquire(self) -> object:
        """Wait until the other thread has called `release`; another task may begin meanwhile."""

    def release(self) -> None:
        """End the wait of the thread that waits, or is going to."""


class Waits(Protocol):
    """Where waits are announced, from any thread.

    A thread must hold no lock when it waits and when it continues, since it may have to wait for
    threads that compute.
    """

    def announce(self) -> AbstractContextManager[None]:
        """The thread waits during the block; another task may begin meanwhile."""

    def gather(self) -> None:
        """Let tasks begin until none that may write can; return then, or after some milliseconds.

        It is for a write that costs less together with those of other tasks.
        """

    def new_gate(self) -> Gate:
        """What this thread is going to wait for."""


def closed_lock() -> threading.Lock:
    """A new lock, which another thread releases."""
    lock = threading.Lock()
    lock.acquire()
    return lock


class _NoWaits:
    """Announces nothing: no server runs the threads."""

    def announce(self) -> AbstractContextManager[None]:
        return nullcontext()

    def gather(self) -> None:
        """No task waits for this thread."""

    def new_gate(self) -> Gate:
        return closed_lock()


NO_WAITS: Waits = _NoWaits()
