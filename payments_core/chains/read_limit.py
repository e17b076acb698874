"""How many requests may read chains at the same time.

A node that hangs holds who asks it until the time is up. Were every thread that answers requests
allowed to ask, one tenant's reads would stop the requests of all.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from payments_core.chains.port import ChainUnavailable

WAIT_S = 0.1
"""So long a request waits for its turn: nodes that are well answer sooner."""


class ReadLimit:
    """So many requests at a time. Threads share it."""

    def __init__(self, limit: int) -> None:
        """Raises ValueError for a limit below 1."""
        if limit < 1:
            raise ValueError("at least one request must be able to read chains")
        self._room = threading.BoundedSemaphore(limit)

    @contextmanager
    def acquire(self) -> Iterator[None]:
        """Take a place for the time of the block. Raises ChainUnavailable where there is none."""
        if not self._room.acquire(timeout=WAIT_S):
            raise ChainUnavailable("too many requests read chains at this time")
        try:
            yield
        finally:
            self._room.release()
