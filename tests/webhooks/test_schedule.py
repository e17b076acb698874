"""Retry-After, in seconds and as a date, and the table where it says nothing."""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from payments_core.clock import HOUR, SECOND
from payments_core.webhooks.retry_schedule import (
    MAX_RETRY_DELAY_MS,
    RETRY_DELAYS_MS,
    parse_retry_after,
    retry_delay_ms,
)

NOW = 784_111_777_000  # Sun, 06 Nov 1994 08:49:37 GMT, the example of RFC 9110


@pytest.mark.parametrize(
    ("text", "wait_s"),
    [
        ("0", 1),
        ("000120", 120),
        (" 120 ", 120),
        ("3600", 3600),
        ("3601", 3600),
        ("9" * 5000, 3600),
        ("Sun, 06 Nov 1994 08:50:37 GMT", 60),
        ("Sunday, 06-Nov-94 08:50:37 GMT", 60),
        ("Sun Nov  6 08:50:37 1994", 60),
        ("Sun, 06 Nov 1994 08:00:00 GMT", 1),
        ("Mon, 07 Nov 1994 08:49:37 GMT", 3600),
    ],
)
def test_what_can_be_read_replaces_the_wait(text: str, wait_s: int) -> None:
    assert retry_delay_ms(3, text, NOW) == wait_s * SECOND


@pytest.mark.parametrize(
    "text",
    [
        "", "-1", "+5", "1.5", "1e3", "٣", "1, 2", "soon", "0x10", "Sun, 06 Nov 1994 08:50:37",
        "Sun, 06 Nov 1994 08:50:37 CET", "Sun, 99 Nov 1994 08:50:37 GMT",
        "Sun, 06 Xyz 1994 08:50:37 GMT", "Sun, 06 Nov 1994 25:50:37 GMT", "1994-11-06T08:50:37Z",
        "Sun, 06 Nov 0000 08:50:37 GMT",
    ],
)  # fmt: skip
def test_what_cannot_be_read_falls_back_on_the_table(text: str) -> None:
    assert parse_retry_after(text, NOW) is None
    assert retry_delay_ms(2, text, NOW) == RETRY_DELAYS_MS[1]


@given(st.text(max_size=60))
def test_no_text_breaks_it_or_waits_longer_than_an_hour(text: str) -> None:
    wait = parse_retry_after(text, NOW)
    assert wait is None or 0 <= wait <= MAX_RETRY_DELAY_MS


@given(st.integers(0, 10**12), st.integers(0, 4_000_000_000))
def test_seconds_and_dates_say_the_same(ahead_s: int, now_s: int) -> None:
    expected = min(ahead_s, 3600) * SECOND
    assert parse_retry_after(str(ahead_s), now_s * SECOND) == expected
    if ahead_s < 10**6:
        date = format_datetime(datetime.fromtimestamp(now_s + ahead_s, UTC), usegmt=True)
        assert parse_retry_after(date, now_s * SECOND) == expected


@given(st.integers(1, 1000))
def test_the_table_grows_to_an_hour_and_stays(attempts: int) -> None:
    assert retry_delay_ms(attempts, None, NOW) == min(30 * SECOND * 2 ** (attempts - 1), HOUR)
