"""Where time comes from: the one module that reads the system's clock.

An instant is an integer: milliseconds since the Unix epoch, UTC.
Integers compare, sort and store exactly; they become ISO 8601 text only at the edge (`format_iso`).
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Protocol, runtime_checkable

Instant = int
"""Milliseconds since 1970-01-01T00:00:00Z."""

SECOND = 1_000
MINUTE = 60 * SECOND
HOUR = 60 * MINUTE
DAY = 24 * HOUR

_EPOCH = datetime.fromtimestamp(0, UTC)
_MICROSECOND = timedelta(microseconds=1)
_MILLISECOND = timedelta(milliseconds=1)
_EARLIEST = datetime.min.replace(tzinfo=UTC)
_LATEST = datetime.max.replace(tzinfo=UTC) - 2 * _MILLISECOND
"""As `parse_bound` may add a millisecond."""
_FINER_DIGITS = re.compile(r"[.,]\d{6}\d*[1-9]", re.ASCII)

MAX_CLOCK_SKEW_MS = 2_500
"""How far the clocks of two machines may differ: half of the shortest lease of a job. A worker
whose clock is further ahead takes leases that are still valid."""


def is_ahead(instant: Instant, now: Instant) -> bool:
    """Whether an instant that was stored as the present is later than any right clock shows now.

    The clock that wrote it was wrong, so nothing may wait for its end, or rest on its age.
    """
    return instant > now + MAX_CLOCK_SKEW_MS


unix_s: Callable[[], float] = time.time
"""Unix seconds by the machine's clock, for code that has no service around it."""


class Clock(Protocol):
    """The time that stamps every record; a sandbox may run ahead of the real one."""

    def now(self) -> Instant:
        """The present instant. It may repeat, and may step back when the system's clock does."""

    def real_now(self) -> Instant:
        """The real present, also under an advanced sandbox: what receivers compare theirs with."""


class SystemClock:
    """The machine's own clock."""

    def now(self) -> Instant:
        return time.time_ns() // 1_000_000

    def real_now(self) -> Instant:
        return self.now()


@runtime_checkable
class HasServerTime(Protocol):
    """An adapter whose server has its own clock, so that skew can be measured.

    Nothing is decided by that clock.
    """

    def server_time(self) -> Instant:
        """The server's present instant, in one round trip."""


def measure_clock_skew_ms(server: HasServerTime, clock: Clock) -> int:
    """How far this machine's clock and a server's are apart at least; the round trip hides some.

    Raises what the server's adapter raises.
    """
    before = clock.real_now()
    theirs = server.server_time()
    return max(0, theirs - clock.real_now(), before - theirs)


class FixedClock:
    """A clock for tests, which moves only when it is set."""

    def __init__(self, now: Instant = 1_790_000_000_000) -> None:
        self._now = now

    def now(self) -> Instant:
        return self._now

    def real_now(self) -> Instant:
        return self._now

    def advance(self, seconds: float) -> Instant:
        """Move the clock by `seconds` and return the new instant."""
        self._now += int(seconds * SECOND)
        return self._now


@lru_cache(maxsize=4_096)
def format_iso(instant: Instant) -> str:
    """An instant as ISO 8601 UTC with milliseconds and `Z` (contract §1).

    Cached, since an answer and its events repeat the few instants of their record.
    """
    whole, milliseconds = divmod(instant, SECOND)
    moment = datetime.fromtimestamp(whole, UTC).isoformat()  # a third of what `strftime` takes
    return f"{moment[:19]}.{milliseconds:03d}Z"


def format_iso_or_none(instant: Instant | None) -> str | None:
    """`format_iso`, for an instant that may be None."""
    return None if instant is None else format_iso(instant)


def to_datetime(instant: Instant) -> datetime:
    """An instant as an aware datetime in UTC."""
    return _EPOCH + instant * _MILLISECOND


def from_datetime(moment: datetime) -> Instant:
    """The instant of an aware datetime; time within a millisecond is cut off."""
    return (moment - _EPOCH) // _MILLISECOND


def parse_iso(text: str) -> Instant:
    """The instant that an ISO 8601 text with a zone names; ValueError for any other text.

    Time within a millisecond is cut off.
    """
    return _parse_microseconds(text) // 1_000


def parse_bound(text: str) -> Instant:
    """The first instant that is not before the time of a text; ValueError as `parse_iso`.

    It is the bound of a window of time, on both sides: what a window includes from this time on is
    what the window before it leaves out.
    """
    instant, rest = divmod(_parse_microseconds(text), 1_000)
    # Python cuts off what is less than a microsecond.
    return instant + (rest > 0 or _FINER_DIGITS.search(text) is not None)


def bound_of(moment: datetime) -> Instant:
    """The first instant that is not before an aware datetime, as `parse_bound` has it."""
    return -((_EPOCH - moment) // _MILLISECOND)


def parse_bound_or_none(text: str | None) -> datetime | None:
    """`parse_bound` as a datetime, or None without a text."""
    return None if text is None else to_datetime(parse_bound(text))


def _parse_microseconds(text: str) -> int:
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is None:
        raise ValueError("the time needs a time zone, for example Z")
    if not _EARLIEST <= moment <= _LATEST:
        raise ValueError("the time is outside of the years 1 to 9999 in UTC")
    return (moment - _EPOCH) // _MICROSECOND
