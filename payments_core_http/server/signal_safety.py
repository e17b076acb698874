"""Wait for what a signal handler sends.

A handler runs in the main thread, between any two of its steps. The main thread may hold the lock
of a `threading.Event` or of a condition, and a handler that needs it waits forever.
`queue.SimpleQueue.put` needs no lock: Python's documentation says that it is reentrant.
"""

from __future__ import annotations

import contextlib
import queue
from typing import TypeVar

WAIT_S = 0.5
"""The maximum delay of a signal that arrives as the main thread begins to wait, or that the system
gives to another thread: neither wakes the main thread."""

Sent = TypeVar("Sent")


def receive(sent: queue.SimpleQueue[Sent], wait_s: float = WAIT_S) -> Sent:
    """Wait for the next item of a queue that signal handlers put into."""
    while True:
        with contextlib.suppress(queue.Empty):
            return sent.get(timeout=wait_s)
