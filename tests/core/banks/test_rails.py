"""The rules of the US rails, against calendars and tables written down apart from the code."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from payments_core.banks.banking_days import (
    add_banking_days,
    eastern_date,
    eastern_instant,
    is_banking_day,
)
from payments_core.banks.rails import BANKING_DAY_OPENS, RAILS, SERVICES, choose_service
from payments_core.banks.return_codes import RETURN_CODES, HolderType, return_deadline
from payments_core.banks.routing_numbers import find_routing_number_fault
from payments_core.banks.settlement import plan_settlement
from payments_core.clock import format_iso
from tests.core.banks.settlement_cases import CASES

NEW_YORK = ZoneInfo("America/New_York")

HOLIDAYS = """
2026-01-01 2026-01-19 2026-02-16 2026-05-25 2026-06-19 2026-09-07 2026-10-12 2026-11-11 2026-11-26
2026-12-25
2027-01-01 2027-01-18 2027-02-15 2027-05-31 2027-07-05 2027-09-06 2027-10-11 2027-11-11 2027-11-25
2028-01-17 2028-02-21 2028-05-29 2028-06-19 2028-07-04 2028-09-04 2028-10-09 2028-11-23 2028-12-25
"""
"""The weekdays on which the Federal Reserve Banks are closed, from their schedule. In 2026 the
4th of July, in 2027 the 19th of June and Christmas, and in 2028 New Year and the 11th of November
are Saturdays."""


def instant(text: str, zone: ZoneInfo) -> int:
    moment = datetime.fromisoformat(text).replace(tzinfo=zone)
    return int(moment.astimezone(UTC).timestamp()) * 1_000


def test_there_are_forty_cases() -> None:
    assert len(CASES) == len({case[:2] for case in CASES}) == 40


@pytest.mark.parametrize(("service", "received", "on", "at", "why"), CASES)
def test_a_transfer_settles_when_the_calendar_says(
    service: str, received: str, on: str, at: str, why: str
) -> None:
    settlement = plan_settlement(service, instant(received, NEW_YORK))  # type: ignore[arg-type]
    assert settlement.on.isoformat() == on, why
    assert format_iso(settlement.at) == f"{at.replace(' ', 'T')}.000Z", why


@pytest.mark.parametrize("service", SERVICES)
def test_nothing_settles_before_it_was_received_or_out_of_order(service: str) -> None:
    start, before = instant("2026-12-20 00:00:00", NEW_YORK), (date.min, 0)
    for minutes in range(0, 16 * 24 * 60, 7):
        received = start + minutes * 60_000
        settlement = plan_settlement(service, received)  # type: ignore[arg-type]
        assert settlement.at >= received
        assert is_banking_day(settlement.on)
        assert (settlement.on, settlement.at) >= before
        before = (settlement.on, settlement.at)


def test_the_banking_days_of_three_years_are_those_of_the_federal_reserve() -> None:
    closed = set(map(date.fromisoformat, HOLIDAYS.split()))
    day = date(2026, 1, 1)
    while day.year < 2029:
        assert is_banking_day(day) == (day.weekday() < 5 and day not in closed), day
        day += timedelta(days=1)


@pytest.mark.parametrize(
    ("day", "count", "expected"),
    [
        ("2026-06-10", 0, "2026-06-10"),
        ("2026-06-10", 2, "2026-06-12"),
        ("2026-06-12", 1, "2026-06-15"),
        ("2026-06-13", 0, "2026-06-15"),
        ("2026-06-13", 1, "2026-06-15"),
        ("2026-06-13", 2, "2026-06-16"),
        ("2026-11-25", 1, "2026-11-27"),
        ("2026-12-31", 2, "2027-01-05"),
    ],
)
def test_banking_days_are_counted_from_any_day(day: str, count: int, expected: str) -> None:
    assert add_banking_days(date.fromisoformat(day), count) == date.fromisoformat(expected)


def test_dates_are_those_of_new_york() -> None:
    assert eastern_date(instant("2026-06-10 23:59:59", NEW_YORK)) == date(2026, 6, 10)
    assert eastern_date(instant("2026-01-11 00:00:00", NEW_YORK)) == date(2026, 1, 11)
    opening = eastern_instant(date(2026, 1, 12), BANKING_DAY_OPENS)
    assert format_iso(opening) == "2026-01-12T13:30:00.000Z"


@pytest.mark.parametrize(
    ("rail", "cents", "same_day", "service"),
    [
        ("ach", 1_000_000_00, True, "ach_same_day"),
        ("ach", 1_000_000_01, True, "ach_next_day"),
        ("ach", 1, False, "ach_next_day"),
        ("wire", 1, False, "wire"),
        ("wire", 1_000_000_01, True, "wire"),
    ],
)
def test_a_transfer_that_is_too_large_for_the_same_day_goes_on_the_next(
    rail: str, cents: int, same_day: bool, service: str
) -> None:
    chosen = choose_service(rail, cents, same_day=same_day)  # type: ignore[arg-type]
    assert chosen == service and SERVICES[chosen].rail == rail


def test_every_service_has_windows_or_hours_and_a_source() -> None:
    assert {service.rail for service in SERVICES.values()} == set(RAILS)
    for service in SERVICES.values():
        assert bool(service.windows) != bool(service.hours)
        assert service.sources and service.max_cents > 0


class TestRoutingNumbers:
    @pytest.mark.parametrize(
        "number", ["021000021", "011401533", "091000019", "121000248", "322271627", "655060042"]
    )
    def test_numbers_in_use_are_accepted(self, number: str) -> None:
        assert find_routing_number_fault(number) is None

    @pytest.mark.parametrize(
        ("number", "fault"),
        [
            ("", "must be 9 digits"),
            ("02100002", "must be 9 digits"),
            ("0210000210", "must be 9 digits"),
            ("02100002a", "must be 9 digits"),
            ("٠٢١٠٠٠٠٢١", "must be 9 digits"),
            ("021000021\n", "must be 9 digits"),
            ("000000000", "must begin with 01 to 12, 21 to 32 or 61 to 72"),
            ("131000000", "must begin with 01 to 12, 21 to 32 or 61 to 72"),
            ("800000000", "must begin with 01 to 12, 21 to 32 or 61 to 72"),
            ("021000022", "must end with the right check digit"),
            ("012000021", "must end with the right check digit"),
        ],
    )
    def test_what_is_wrong_is_said(self, number: str, fault: str) -> None:
        assert find_routing_number_fault(number) == fault

    def test_every_single_wrong_digit_is_found(self) -> None:
        right = "021000021"
        for place in range(9):
            for digit in "0123456789":
                number = right[:place] + digit + right[place + 1 :]
                assert (find_routing_number_fault(number) is None) == (number == right)


class TestReturns:
    def test_the_codes_are_r01_to_r29(self) -> None:
        assert list(RETURN_CODES) == [f"R{number:02d}" for number in range(1, 30)]

    @pytest.mark.parametrize(
        ("code", "holder", "settled_on", "deadline"),
        [
            ("R01", "individual", "2026-06-10", "2026-06-12T12:30:00.000Z"),
            ("R02", "business", "2026-06-11", "2026-06-15T12:30:00.000Z"),
            ("R03", "individual", "2026-11-25", "2026-11-30T13:30:00.000Z"),
            ("R04", "business", "2026-07-02", "2026-07-06T12:30:00.000Z"),
            ("R10", "individual", "2026-06-10", "2026-08-10T12:30:00.000Z"),
            ("R10", "business", "2026-06-10", "2026-06-12T12:30:00.000Z"),
            ("R29", "individual", "2026-06-10", "2026-06-12T12:30:00.000Z"),
            ("R29", "business", "2026-06-10", "2026-06-12T12:30:00.000Z"),
            ("R07", "individual", "2026-09-11", "2026-11-12T13:30:00.000Z"),
            ("R13", "individual", "2026-06-10", "2026-06-10T12:30:00.000Z"),
        ],
    )
    def test_each_code_has_its_time(
        self, code: str, holder: HolderType, settled_on: str, deadline: str
    ) -> None:
        found = return_deadline(code, holder, date.fromisoformat(settled_on))
        assert found is not None
        assert format_iso(found) == deadline

    @pytest.mark.parametrize("holder", ["individual", "business"])
    def test_what_banks_agree_on_has_no_deadline(self, holder: HolderType) -> None:
        assert return_deadline("R06", holder, date(2026, 6, 10)) is None

    def test_only_consumers_have_sixty_days(self) -> None:
        assert {row.business for row in RETURN_CODES.values()} == {
            "two_banking_days", "operator", "by_agreement", "on_refusal",
        }  # fmt: skip
        long = {code for code, row in RETURN_CODES.items() if row.individual == "sixty_days"}
        assert long == {"R05", "R07", "R10", "R11"}
