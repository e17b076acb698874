"""The services of the US rails as tables: cut-off times, settlement times and maximum amounts.

All times are Eastern Time. The sources:

- FEDACH: Federal Reserve Financial Services, "FedACH Processing Schedule".
- SAME_DAY: Nacha, "Same Day ACH" (three windows since 2021-03-19, 1,000,000 dollars for each
  payment since 2022-03-18), and Operating Rules, Subsection 3.3.1.
- NACHA_AMOUNT: Nacha Operating Rules, Appendix Three: the field Amount has ten digits, in cents.
- FEDWIRE: Federal Reserve Financial Services, "Fedwire Funds Service Operating Hours": a business
  day begins at 9 p.m. on the calendar day before, and takes customers' transfers until 6:45 p.m.
- FEDWIRE_AMOUNT: Federal Reserve Banks, Operating Circular 6: less than 10 billion dollars.

A bank may close its own windows earlier, and set lower limits.
"""

from __future__ import annotations

from datetime import time
from typing import Literal

import attrs

Rail = Literal["ach", "wire"]
RAILS: tuple[Rail, ...] = ("ach", "wire")

ServiceName = Literal["ach_same_day", "ach_next_day", "wire"]


@attrs.frozen
class Moment:
    """A time of day, `days` after another day."""

    at: time
    days: int = 0


@attrs.frozen
class BatchWindow:
    """A file of a banking day: transfers that have arrived by `deadline` settle together.

    The deadline counts calendar days from the banking day, the settlement counts banking days.
    A transfer that arrives at the deadline itself is in time.
    """

    deadline: Moment
    settles: Moment


@attrs.frozen
class OpenHours:
    """Hours of a banking day in which each transfer settles as it arrives."""

    opens: Moment
    closes: Moment


@attrs.frozen
class RailService:
    """What a rail offers. `max_cents` is the largest transfer; a service has windows or hours."""

    rail: Rail
    max_cents: int
    sources: tuple[str, ...]
    windows: tuple[BatchWindow, ...] = ()
    hours: OpenHours | None = None


_OVERNIGHT = BatchWindow(Moment(time(2, 15), days=1), settles=Moment(time(8, 30), days=1))

SERVICES: dict[ServiceName, RailService] = {
    "ach_same_day": RailService(
        "ach",
        max_cents=1_000_000_00,
        sources=("SAME_DAY", "FEDACH"),
        windows=(
            BatchWindow(Moment(time(10, 30)), settles=Moment(time(13, 0))),
            BatchWindow(Moment(time(14, 45)), settles=Moment(time(17, 0))),
            BatchWindow(Moment(time(16, 45)), settles=Moment(time(18, 0))),
            _OVERNIGHT,  # too late for today: it settles like a transfer of the next day
        ),
    ),
    "ach_next_day": RailService(
        "ach",
        max_cents=99_999_999_99,
        sources=("FEDACH", "NACHA_AMOUNT"),
        windows=(_OVERNIGHT,),
    ),
    "wire": RailService(
        "wire",
        max_cents=9_999_999_999_99,
        sources=("FEDWIRE", "FEDWIRE_AMOUNT"),
        hours=OpenHours(Moment(time(21, 0), days=-1), closes=Moment(time(18, 45))),
    ),
}

BANKING_DAY_OPENS = time(8, 30)
"""When returns are settled and made available: the opening of a banking day (FEDACH)."""


def choose_service(rail: Rail, amount_cents: int, *, same_day: bool) -> ServiceName:
    """The service for a transfer; one too large for same-day service goes on the next day."""
    if rail == "wire":
        return "wire"
    fits = amount_cents <= SERVICES["ach_same_day"].max_cents
    return "ach_same_day" if same_day and fits else "ach_next_day"
