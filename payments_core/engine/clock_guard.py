"""Detects jumps of this machine's clock, and stops its use until it is right again.

A start with a wrong clock is refused (`deployment/build.py`); this guards the time after it. With a
clock that is an hour ahead, a worker would expire live Payments, take the leases of others, and
postpone its jobs until all other clocks are there too.

If the storage has no clock, nothing shows which of two times is right. So a clock that was set
by hours counts as wrong until it is back, or an operator restarts the process; a clock set
by minutes is trusted, and jobs that it postponed wait for minutes. A sandbox is often on a laptop,
in a virtual machine that sleeps and does not know it: there a clock is trusted again that has
stayed where it was set for a minute.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import NoReturn

from payments_core.clock import MINUTE, SECOND, Clock, HasServerTime, Instant, measure_clock_skew_ms
from payments_core.storage.port import Storage, StorageUnavailable

MAX_UNNOTICED_JUMP_MS = 1 * SECOND
MAX_STEP_ALONE_MS = 5 * MINUTE
"""The largest step of a clock that is trusted without another clock: a paused virtual machine
is corrected in this way. It is the shortest lifetime of a Payment."""
SANDBOX_PATIENCE_MS = 1 * MINUTE
"""How long a sandbox whose storage has no clock does nothing after the clock was set by more."""

_log = logging.getLogger(__name__)


def _elapsed_ms() -> int:
    """Milliseconds since some moment, including suspended time if the system counts it."""
    if hasattr(time, "CLOCK_BOOTTIME"):
        return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1_000_000
    return time.monotonic_ns() // 1_000_000


class ClockGuard:
    """Compares the machine's clock with the elapsed time, and asks the storage's clock only
    if they disagree. Threads share it."""

    def __init__(
        self,
        storage: Storage,
        clock: Clock | None,
        max_skew_ms: int,
        elapsed_ms: Callable[[], int] = _elapsed_ms,
        *,
        patience_ms: int | None = None,
    ) -> None:
        """The guard does nothing if `clock` is None, a clock of another kind. If the storage has no
        clock, a clock that was set is believed after `patience_ms`, or never."""
        self._server = storage if isinstance(storage, HasServerTime) else None
        self._clock = clock
        self._max_skew_ms = max_skew_ms
        self._elapsed_ms = elapsed_ms
        self._patience_ms = patience_ms
        self._offset = 0 if clock is None else clock.real_now() - elapsed_ms()
        self._is_wrong = False
        self._wrong_since_ms = 0
        self._lock = threading.Lock()

    def require_right(self) -> None:
        """Return unless the clock has jumped away from the storage's, or by more than
        MAX_STEP_ALONE_MS if that has none. Raises StorageUnavailable.

        A machine that was suspended, or whose clock was corrected, jumps towards it.
        """
        if self._clock is None:
            return
        if self._server is not None:
            self._require_agreement(self._clock, self._server)
        else:
            with self._lock:
                self._require_steadiness(self._clock)

    def _require_agreement(self, clock: Clock, server: HasServerTime) -> None:
        offset = clock.real_now() - self._elapsed_ms()
        has_jumped = abs(offset - self._offset) > MAX_UNNOTICED_JUMP_MS
        if not (has_jumped or self._is_wrong):
            return
        skew_ms = measure_clock_skew_ms(server, clock)
        if skew_ms > self._max_skew_ms:
            says = f"this machine's clock differs from the storage's by {skew_ms / SECOND:.1f} s"
            self._refuse(says, "until it is right")
        self._believe(offset)

    def _require_steadiness(self, clock: Clock) -> None:
        before = self._elapsed_ms()
        now = clock.real_now()
        # This thread may have paused between the two readings: the offset is one of these.
        lowest, highest = now - self._elapsed_ms(), now - before
        has_jumped = max(lowest - self._offset, self._offset - highest) > MAX_STEP_ALONE_MS
        if has_jumped and not self._has_stayed(before):
            says = f"this machine's clock was set by {(highest - self._offset) / SECOND:.1f} s"
            otherwise = "this process is started again"
            if self._patience_ms is not None:
                otherwise = f"{self._patience_ms / SECOND:.0f} s have passed"
            self._refuse(says, f"until it is back, or {otherwise}")
        self._believe(min(max(self._offset, lowest), highest))  # it may be corrected slowly

    def _has_stayed(self, elapsed_ms: int) -> bool:
        """Whether the clock has been where it was set for long enough to be believed."""
        if not self._is_wrong:
            self._wrong_since_ms = elapsed_ms
        return self._patience_ms is not None and (
            elapsed_ms - self._wrong_since_ms >= self._patience_ms
        )

    def _refuse(self, says: str, until: str) -> NoReturn:
        if not self._is_wrong:
            _log.error("ALARM: %s, and nothing is done %s", says, until)
        self._is_wrong = True
        raise StorageUnavailable(says)

    def _believe(self, offset: int) -> None:
        if self._is_wrong:
            _log.warning("this machine's clock is right again")
        self._offset, self._is_wrong = offset, False


class GuardedClock:
    """A clock that raises while this machine's is wrong.

    Writers read it last: a decision made with a clock that jumped meanwhile is not written. It
    reads the clock first and checks it after: so a clock that jumps in between is noticed.
    """

    def __init__(self, clock: Clock, guard: ClockGuard) -> None:
        self._clock = clock
        self._guard = guard

    def now(self) -> Instant:
        """The clock's instant. Raises StorageUnavailable."""
        now = self._clock.now()
        self._guard.require_right()
        return now

    def real_now(self) -> Instant:
        """The clock's real instant. Raises StorageUnavailable."""
        now = self._clock.real_now()
        self._guard.require_right()
        return now
