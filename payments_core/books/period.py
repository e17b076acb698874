"""Periods of the books: whole days in UTC, from a first day to the day after the last."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta

import attrs

from payments_core.clock import DAY, MINUTE, Instant, from_datetime, to_datetime
from payments_core.errors import FieldError, ValidationFailed

CLOSES_AFTER_MS = 10 * MINUTE
"""How long after its end a day is closed: an entry has the time at which its commit began, so it
may be stored a little later. Everything that is booked after that is in a later day."""

EPOCH = date(1970, 1, 1)
"""Before every movement."""

MAX_DAYS = 3_700
"""The maximum length of a period: about ten years."""


@attrs.frozen
class Period:
    """The days `first` to before `end`, in UTC, as dates.

    Periods side by side neither share a movement nor leave one out.

    >>> november = Period(date(2026, 11, 1), date(2026, 12, 1))
    >>> len(november.days)
    30
    """

    first: date
    end: date

    @property
    def since(self) -> Instant:
        """Its first instant."""
        return begin_of(self.first)

    @property
    def until(self) -> Instant:
        """The first instant after it."""
        return begin_of(self.end)

    @property
    def days(self) -> tuple[date, ...]:
        """Each of its days."""
        return tuple(self._iter_days())

    def _iter_days(self) -> Iterator[date]:
        day = self.first
        while day < self.end:
            yield day
            day += timedelta(days=1)

    def contains(self, instant: Instant) -> bool:
        """Whether an instant is in it."""
        return self.since <= instant < self.until


def begin_of(day: date) -> Instant:
    """The first instant of a day in UTC."""
    return from_datetime(datetime.combine(day, time(), UTC))


def day_of(instant: Instant) -> date:
    """The day in UTC of an instant."""
    return to_datetime(instant).date()


def closed_until(now: Instant) -> date:
    """The first day that is not closed yet."""
    return day_of(now - CLOSES_AFTER_MS)


def require_closed(first: date, end: date, now: Instant) -> Period:
    """The period of closed days. Raises ValidationFailed."""
    faults = []
    if first >= end:
        faults.append(FieldError("to", "must be a later day than `from`: it is not in the period"))
    elif (end - first) > timedelta(milliseconds=MAX_DAYS * DAY):
        faults.append(FieldError("to", f"must be at most {MAX_DAYS} days after `from`"))
    elif end > closed_until(now):
        faults.append(
            FieldError(
                "to",
                f"must not be later than {closed_until(now)}: a day is closed ten minutes after"
                " its end, in UTC",
            )
        )
    if faults:
        raise ValidationFailed(tuple(faults))
    return Period(first, end)
