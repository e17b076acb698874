"""A circuit breaker: after some failures in a row nothing is tried for a while."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from payments_core.limiters.port import LimiterUnavailable

MAX_FAILURES = 3
PAUSE_S = 0.5


class CircuitBreaker:
    """Counts consecutive failures of all threads.

    After `failures` of them it refuses for `pause_s`; then one attempt goes through, while the
    others are still refused. Its result decides: all may try again, or the pause repeats.
    """

    def __init__(
        self,
        failures: int = MAX_FAILURES,
        pause_s: float = PAUSE_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._failures = failures
        self._pause_s = pause_s
        self._clock = clock
        self.reset_after_fork()

    def reset_after_fork(self) -> None:
        """Forget everything: in the child of a fork, nothing ends the parent's attempts."""
        self._lock = threading.Lock()
        self._in_a_row = 0
        self._closed_until = 0.0

    @contextmanager
    def attempt(self) -> Iterator[None]:
        """Run the block, or raise LimiterUnavailable.

        An exception counts as a failure.
        """
        self._require_closed()
        try:
            yield
        except BaseException:
            self._record_failure()
            raise
        with self._lock:
            self._in_a_row = 0

    def _require_closed(self) -> None:
        with self._lock:
            if self._in_a_row < self._failures:
                return
            now = self._clock()
            if now < self._closed_until:
                raise LimiterUnavailable("it failed recently and is not retried yet")
            # This call is the probe. If it never ends, the next is let through after a pause.
            self._closed_until = now + self._pause_s

    def _record_failure(self) -> None:
        with self._lock:
            self._in_a_row += 1
            self._closed_until = self._clock() + self._pause_s
