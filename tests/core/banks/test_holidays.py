"""The holidays of the Federal Reserve Banks against a schedule that they have published."""

from __future__ import annotations

from datetime import date, timedelta

import pytest

from payments_core.banks.banking_days import is_banking_day

# Federal Reserve Bank of Richmond, "Holiday Schedule", 2025 to 2027. A holiday on a Saturday closes
# nothing, and one on a Sunday closes the Monday: 2027-07-05.
CLOSED = {
    2025: "01-01 01-20 02-17 05-26 06-19 07-04 09-01 10-13 11-11 11-27 12-25",
    2026: "01-01 01-19 02-16 05-25 06-19 09-07 10-12 11-11 11-26 12-25",
    2027: "01-01 01-18 02-15 05-31 07-05 09-06 10-11 11-11 11-25",
}


@pytest.mark.parametrize("year", sorted(CLOSED))
def test_the_banks_are_closed_on_the_weekdays_of_the_schedule_and_no_others(year: int) -> None:
    first = date(year, 1, 1)
    weekdays = [
        day
        for day in (first + timedelta(days=number) for number in range(365))
        if day.weekday() < 5
    ]
    closed = [f"{day:%m-%d}" for day in weekdays if not is_banking_day(day)]
    assert closed == CLOSED[year].split()
