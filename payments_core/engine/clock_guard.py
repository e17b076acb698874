"""Notices when this machine's clock jumps, and lets nothing be done by it until it is right again.

A start by a wrong clock is refused (`deployment/build.py`); this is for the time after it. By a
clock that is an hour ahead a worker would expire Payments that live, take the leases of others, and
put off what it has looked at until everybody else's clock is there too.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from payments_core.clock import SECOND, Clock, HasServerTime, Instant, measure_clock_skew_ms
from payments_core.storage.port import Storage, StorageUnavailable

MAX_UNNOTICED_JUMP_MS = 1 * SECOND

_log = logging.getLogger(__name__)


def _monotonic_ms() -> int:
    return time.monotonic_ns() // 1_000_000


class ClockGuard:
    """Compares the machine's clock with how much time has passed, and asks the storage's only
    where they disagree."""

    def __init__(
        self,
        storage: Storage,
        clock: Clock | None,
        max_skew_ms: int,
        monotonic_ms: Callable[[], int] = _monotonic_ms,
    ) -> None:
        """It does nothing for a `clock` of another kind, which is None, nor where the storage has
        no clock of its own."""
        self._server = storage if isinstance(storage, HasServerTime) else None
        self._clock = clock
        self._max_skew_ms = max_skew_ms
        self._monotonic_ms = monotonic_ms
        self._offset = 0 if clock is None else clock.real_now() - monotonic_ms()
        self._is_wrong = False

    def require_right(self) -> None:
        """Return unless the clock has jumped away from the storage's. Raises StorageUnavailable.

        A machine that was suspended, or whose clock was corrected, has jumped towards it.
        """
        if self._server is None or self._clock is None:
            return
        offset = self._clock.real_now() - self._monotonic_ms()
        has_jumped = abs(offset - self._offset) > MAX_UNNOTICED_JUMP_MS
        if not (has_jumped or self._is_wrong):
            return
        skew_ms = measure_clock_skew_ms(self._server, self._clock)
        if skew_ms > self._max_skew_ms:
            says = f"this machine's clock differs from the storage's by {skew_ms / SECOND:.1f} s"
            if not self._is_wrong:
                _log.error("ALARM: %s, and nothing is done until it is right", says)
            self._is_wrong = True
            raise StorageUnavailable(says)
        if self._is_wrong:
            _log.warning("this machine's clock is right again")
        self._offset, self._is_wrong = offset, False


class GuardedClock:
    """A clock that tells no time while this machine's is wrong.

    Whoever writes asks it last: what was decided by a clock that jumped meanwhile is not written.
    """

    def __init__(self, clock: Clock, guard: ClockGuard) -> None:
        self._clock = clock
        self._guard = guard

    def now(self) -> Instant:
        """As the clock. Raises StorageUnavailable."""
        self._guard.require_right()
        return self._clock.now()

    def real_now(self) -> Instant:
        """As the clock. Raises StorageUnavailable."""
        self._guard.require_right()
        return self._clock.real_now()
