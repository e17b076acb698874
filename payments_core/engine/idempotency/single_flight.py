"""Requests in progress in this process, so that two with one key do not both do the work.

Correctness does not depend on it: the stored answer's unique id ensures it, across processes too.
It saves the second caller the work, and lets it wait for the first caller's answer (contract §4).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from payments_core.errors import IdempotencyInProgress

MAX_WAIT_S = 2.0


class SingleFlight:
    """At most one caller per key at a time; a few wait for it, the rest are refused at once.

    The table holds only keys whose request is in progress, so it never outgrows the threads.
    """

    def __init__(self, threads: int, wait_s: float = MAX_WAIT_S) -> None:
        """`threads` is how many serve requests: a quarter of them may wait, so that a storm of
        retries of one slow request never takes all of them."""
        self._changed = threading.Condition()
        self._under_way: set[str] = set()
        self._free_seats = threads // 4
        self._wait_s = wait_s

    @contextmanager
    def acquire(self, key: str) -> Iterator[bool]:
        """Be the only one inside with this key, waiting for another if necessary; return whether it
        waited.

        A caller that has waited must look up the answer first: the previous one may have stored it,
        or may have failed and stored nothing. Raises IdempotencyInProgress when no seat to wait is
        free, or the wait timed out.
        """
        with self._changed:
            has_waited = key in self._under_way
            if has_waited:
                self._wait_for(key)
            self._under_way.add(key)
        try:
            yield has_waited
        finally:
            with self._changed:
                self._under_way.discard(key)
                self._changed.notify_all()

    def _wait_for(self, key: str) -> None:
        if self._free_seats == 0:
            raise IdempotencyInProgress()
        deadline = time.monotonic() + self._wait_s
        self._free_seats -= 1
        try:
            while key in self._under_way:
                # Others' notifications wake us too, so the remaining time is computed each time.
                left_s = deadline - time.monotonic()
                if left_s <= 0:
                    raise IdempotencyInProgress()
                self._changed.wait(left_s)
        finally:
            self._free_seats += 1
