"""Requests in progress in this process, so that two with one key do not both do the work.

Correctness does not depend on it: the stored response's unique id ensures it, across processes too.
It saves the second caller the work, and lets it wait for the first caller's response (contract §4).
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

from payments_core.errors import IdempotencyInProgress
from payments_core.waiting import NO_WAITS, Waits, closed_lock

MAX_WAIT_S = 2.0


class SingleFlight:
    """At most one caller per key at a time; a few wait for it, the rest are refused at once.

    The table holds only keys whose request is in progress, so it never outgrows the threads.
    """

    def __init__(self, threads: int, waits: Waits = NO_WAITS, wait_s: float = MAX_WAIT_S) -> None:
        """`threads` is how many serve requests: a quarter of them may wait, so that a storm of
        retries of one slow request never takes all of them."""
        self._lock = threading.Lock()
        """Guards the fields below."""
        self._under_way: dict[str, deque[threading.Lock]] = {}
        """For each key the gates of those that wait, in the order of their arrival."""
        self._free_seats = threads // 4
        self._wait_s = wait_s
        self._waits = waits

    @contextmanager
    def acquire(self, key: str) -> Iterator[None]:
        """Be the only one inside with this key, waiting for another if necessary.

        Look up the response inside: the previous caller may have stored it, or may have failed and
        stored nothing. Raises IdempotencyInProgress when no seat to wait is
        free, or the wait timed out.
        """
        gate = self._enter(key)
        try:
            if gate is not None:
                with self._waits.announce():
                    gate.acquire(timeout=self._wait_s)
                self._require_entry(key, gate)
            yield
        finally:
            self._leave(key, gate)

    def _enter(self, key: str) -> threading.Lock | None:
        """What the caller has to wait for, if another one is inside."""
        with self._lock:
            waiting = self._under_way.get(key)
            if waiting is None:
                self._under_way[key] = deque()
                return None
            if self._free_seats == 0:
                raise IdempotencyInProgress()
            self._free_seats -= 1
            gate = closed_lock()
            waiting.append(gate)
            return gate

    def _require_entry(self, key: str, gate: threading.Lock) -> None:
        with self._lock:
            if gate in self._under_way[key]:
                raise IdempotencyInProgress()

    def _leave(self, key: str, gate: threading.Lock | None) -> None:
        """Wait no more, or let the next one in."""
        with self._lock:
            waiting = self._under_way[key]
            if gate is not None and gate in waiting:
                waiting.remove(gate)
                self._free_seats += 1
            elif waiting:
                self._free_seats += 1
                waiting.popleft().release()
            else:
                del self._under_way[key]
