"""Wait for what a signal handler sends.

A handler runs in the main thread, between any two steps of what that does. The lock of a
`threading.Event` or of a condition may be held there, and a handler that needs it waits for ever.
`queue.SimpleQueue.put` needs none: Python's documentation says that it is reentrant.
"""

from __future__ import annotations

import contextlib
import queue
from typing import TypeVar

WAIT_S = 0.5
"""How late a signal is handled that came at the moment at which the main thread began to wait, or
that the system gave to another thread: neither wakes the main thread."""

Sent = TypeVar("Sent")


def receive(sent: queue.SimpleQueue[Sent], wait_s: float = WAIT_S) -> Sent:
    """Wait for the next item of a queue that signal handlers put into."""
    while True:
        with contextlib.suppress(queue.Empty):
            return sent.get(timeout=wait_s)
