"""Banking days and Eastern Time, by which the US rails count.

A banking day is a day on which the Federal Reserve Banks are open: Monday to Friday, except the
holidays of the Federal Reserve System. A holiday on a Sunday is kept on the Monday; a holiday on a
Saturday is kept on no other day, and the Friday before it is a banking day. (Private banks, and
most other calendars of US federal holidays, close on that Friday.)

Source: Federal Reserve Financial Services, "Holiday Schedules"; the years 2025 to 2027 are checked
against the schedule of the Federal Reserve Bank of Richmond by `tests/core/banks`.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from functools import cache
from zoneinfo import ZoneInfo

from payments_core.clock import Instant

EASTERN = ZoneInfo("America/New_York")
_CALENDAR = "XFED"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_ONE_DAY = timedelta(days=1)
_SATURDAY = 5


def is_banking_day(day: date) -> bool:
    """Whether the Federal Reserve Banks are open on this day."""
    return day.weekday() < _SATURDAY and day not in _load_holidays(day.year)


def add_banking_days(day: date, count: int) -> date:
    """The banking day that comes `count` banking days after `day`, which may be any day.

    With a count of zero: `day` itself, or the first banking day after it.
    """
    while not is_banking_day(day):
        day += _ONE_DAY
        if is_banking_day(day):
            count = max(0, count - 1)
    for _ in range(count):
        day += _ONE_DAY
        while not is_banking_day(day):
            day += _ONE_DAY
    return day


def eastern_date(instant: Instant) -> date:
    """The date in New York at this instant."""
    return (_EPOCH + instant * _MILLISECOND).astimezone(EASTERN).date()


def eastern_instant(day: date, at: time) -> Instant:
    """The instant at which clocks in New York show this time.

    The hour that a change of the clocks repeats counts the first time it is shown; the times of
    the rails never fall into it, because clocks change on Sundays.
    """
    local = datetime.combine(day, at, tzinfo=EASTERN)
    return (local.astimezone(UTC) - _EPOCH) // _MILLISECOND


@cache
def _load_holidays(year: int) -> frozenset[date]:
    import holidays  # loads slowly; only bank transfers need it

    return frozenset(holidays.financial_holidays(_CALENDAR, years=year))
