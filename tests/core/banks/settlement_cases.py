"""When transfers settle: 40 cases written by hand from the rails' published calendars.

A row is (service, received in Eastern Time, settlement date, settlement in UTC, why). The texts
are read here, and not by the code under test. New York is UTC-5 in winter and UTC-4 in summer;
clocks change on 2026-03-08 and 2026-11-01. Holidays that matter here: 2026-07-04 (Saturday, so
Friday the 3rd is a banking day), 2026-09-07, 2026-10-12, 2026-11-11, 2026-11-26, 2026-12-25,
2027-01-01, 2027-07-04 (Sunday, kept on the 5th), 2027-12-25 (Saturday).
"""

from __future__ import annotations

Case = tuple[str, str, str, str, str]

SAME, NEXT, WIRE = "ach_same_day", "ach_next_day", "wire"

CASES: tuple[Case, ...] = (
    # The three windows of the same day, to the second. Wednesday, 2026-06-10.
    (SAME, "2026-06-10 09:00:00", "2026-06-10", "2026-06-10 17:00:00", "first window"),
    (SAME, "2026-06-10 10:30:00", "2026-06-10", "2026-06-10 17:00:00", "at its deadline"),
    (
        SAME,
        "2026-06-10 10:30:01",
        "2026-06-10",
        "2026-06-10 21:00:00",
        "a second later: the second",
    ),
    (SAME, "2026-06-10 14:45:00", "2026-06-10", "2026-06-10 21:00:00", "at its deadline"),
    (SAME, "2026-06-10 14:45:01", "2026-06-10", "2026-06-10 22:00:00", "a second later: the third"),
    (SAME, "2026-06-10 16:45:00", "2026-06-10", "2026-06-10 22:00:00", "at its deadline"),
    (SAME, "2026-06-10 16:45:01", "2026-06-11", "2026-06-11 12:30:00", "too late: the next day"),
    (SAME, "2026-06-11 02:15:00", "2026-06-11", "2026-06-11 12:30:00", "the night is Wednesday's"),
    (SAME, "2026-06-11 02:15:01", "2026-06-11", "2026-06-11 17:00:00", "Thursday's first window"),
    # The next day.
    (NEXT, "2026-06-10 09:00:00", "2026-06-11", "2026-06-11 12:30:00", "an ordinary Wednesday"),
    (NEXT, "2026-06-11 02:15:00", "2026-06-11", "2026-06-11 12:30:00", "at the night's deadline"),
    (NEXT, "2026-06-11 02:15:01", "2026-06-12", "2026-06-12 12:30:00", "a second later"),
    # Weekends.
    (NEXT, "2026-06-12 15:00:00", "2026-06-15", "2026-06-15 12:30:00", "Friday: Monday"),
    (NEXT, "2026-06-13 02:15:00", "2026-06-15", "2026-06-15 12:30:00", "Friday's night"),
    (NEXT, "2026-06-13 02:15:01", "2026-06-16", "2026-06-16 12:30:00", "Saturday is Monday's file"),
    (NEXT, "2026-06-14 12:00:00", "2026-06-16", "2026-06-16 12:30:00", "Sunday too"),
    (NEXT, "2026-06-15 01:00:00", "2026-06-16", "2026-06-16 12:30:00", "Sunday has no night"),
    (SAME, "2026-06-12 16:45:01", "2026-06-15", "2026-06-15 12:30:00", "Friday, too late"),
    (SAME, "2026-06-13 12:00:00", "2026-06-15", "2026-06-15 17:00:00", "Saturday: Monday's first"),
    # Holidays.
    (NEXT, "2026-07-02 12:00:00", "2026-07-03", "2026-07-03 12:30:00", "Saturday's is not kept"),
    (SAME, "2026-07-03 12:00:00", "2026-07-03", "2026-07-03 21:00:00", "that Friday is open"),
    (NEXT, "2026-07-03 12:00:00", "2026-07-06", "2026-07-06 12:30:00", "Friday the 3rd: Monday"),
    (NEXT, "2027-07-02 12:00:00", "2027-07-06", "2027-07-06 12:30:00", "Sunday's kept on Monday"),
    (SAME, "2027-07-05 09:00:00", "2027-07-06", "2027-07-06 17:00:00", "that Monday is closed"),
    (NEXT, "2027-12-23 12:00:00", "2027-12-24", "2027-12-24 13:30:00", "Christmas on Saturday"),
    (NEXT, "2026-11-25 12:00:00", "2026-11-27", "2026-11-27 13:30:00", "over Thanksgiving"),
    (NEXT, "2026-11-10 12:00:00", "2026-11-12", "2026-11-12 13:30:00", "over Veterans Day"),
    (NEXT, "2026-12-24 18:00:00", "2026-12-28", "2026-12-28 13:30:00", "Christmas and a weekend"),
    (NEXT, "2026-12-31 12:00:00", "2027-01-04", "2027-01-04 13:30:00", "New Year and a weekend"),
    (SAME, "2026-09-07 09:00:00", "2026-09-08", "2026-09-08 17:00:00", "Labor Day"),
    # Daylight saving: the same time in New York, another in UTC.
    (NEXT, "2026-03-06 12:00:00", "2026-03-09", "2026-03-09 12:30:00", "clocks go forward"),
    (NEXT, "2026-10-30 12:00:00", "2026-11-02", "2026-11-02 13:30:00", "clocks go back"),
    (SAME, "2026-11-02 10:30:00", "2026-11-02", "2026-11-02 18:00:00", "the first winter window"),
    # Wires: at once while the Fedwire business day is open, which begins on the evening before.
    (WIRE, "2026-06-10 12:00:00", "2026-06-10", "2026-06-10 16:00:00", "at once"),
    (WIRE, "2026-06-10 18:45:00", "2026-06-10", "2026-06-10 22:45:00", "at the cut-off"),
    (WIRE, "2026-06-10 18:45:01", "2026-06-11", "2026-06-11 01:00:00", "waits for 9 p.m."),
    (WIRE, "2026-06-10 21:30:00", "2026-06-11", "2026-06-11 01:30:00", "Thursday has begun"),
    (WIRE, "2026-06-12 19:00:00", "2026-06-15", "2026-06-15 01:00:00", "Monday begins on Sunday"),
    (WIRE, "2026-11-25 20:00:00", "2026-11-27", "2026-11-27 02:00:00", "over Thanksgiving"),
    (WIRE, "2026-03-07 10:00:00", "2026-03-09", "2026-03-09 01:00:00", "over the change of clocks"),
)
