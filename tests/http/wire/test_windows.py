"""Windows of time over lists: those side by side lose and double nothing (contract §1).

Every row of the route table with `createdAfter` and `createdBefore` is asked; a new one is asked
from its first day.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from fractions import Fraction
from functools import cache
from itertools import pairwise
from typing import Any
from urllib.parse import quote

import attrs
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from payments_core.clock import format_iso, parse_bound, parse_iso
from payments_core.storage.memory.adapter import MemoryStorage
from payments_core_http.routes import ROUTES
from tests.http.checkout import Checkout

WINDOWED = [
    row.path
    for row in ROUTES
    if row.method == "GET"
    and attrs.has(row.query)
    and {"createdAfter", "createdBefore"} & {field.name for field in attrs.fields(row.query)}
]
STEPS_MS = (0, 0, 1, 1, 2, 998, 1)
"""The time between records: several of one millisecond, neighbours, and the end of a second."""


@cache
def shop() -> tuple[Checkout, int]:
    """A shop with Payments and their events at these times, and the time of the first."""
    shop = Checkout(MemoryStorage())
    shop.system.advance(5)
    begun = shop.clock.now()
    for number, step in enumerate(STEPS_MS):
        shop.system.advance(Fraction(step, 1_000))  # type: ignore[arg-type]
        assert shop.create(key=f"w{number}", expiresInSeconds=86_400).status == 201
    return shop, begun


def listed(path: str, **bounds: str) -> list[Any]:
    query = "&".join(f"{name}={quote(text)}" for name, text in bounds.items())
    seen = shop()[0].api.call("GET", f"{path}?limit=100&{query}")
    assert seen.status == 200, seen.body
    assert seen.json["hasNextPage"] is False
    found: list[Any] = seen.json["data"]
    return found


def written(ticks: int, zone: timedelta = timedelta()) -> str:
    """A time in tenths of a microsecond after 1970, with all its digits."""
    seconds, rest = divmod(ticks, 10_000_000)
    moment = datetime.fromtimestamp(seconds, UTC) + zone
    sign, minutes = "-" if zone < timedelta() else "+", abs(zone) // timedelta(minutes=1)
    digits = f"{rest:07d}".rstrip("0")
    return (
        f"{moment:%Y-%m-%dT%H:%M:%S}{'.' + digits if digits else ''}"
        f"{sign}{minutes // 60:02d}:{minutes % 60:02d}"
    )


def test_there_are_windowed_lists() -> None:
    assert set(WINDOWED) == {"/v2/payments", "/v2/console/events", "/v2/console/audit"}


ticks = st.integers(-20_000, 10_100_000) | st.integers(-2, 1_003).map(lambda ms: ms * 10_000)


@pytest.mark.parametrize("path", WINDOWED)
@settings(max_examples=60, deadline=None)
@example(cuts=[0, 10_000])
@example(cuts=[9_999, 10_001])
@given(cuts=st.lists(ticks, min_size=1, max_size=4))
def test_windows_side_by_side_lose_and_double_nothing(path: str, cuts: list[int]) -> None:
    first = shop()[1] * 10_000
    edges = [first - 10_000_000, *sorted(first + cut for cut in cuts), first + 10**9]
    every = listed(path, createdAfter=written(edges[0]), createdBefore=written(edges[-1]))
    assert len(every) >= len(STEPS_MS)
    windows = [
        listed(path, createdAfter=written(after), createdBefore=written(before))
        for after, before in pairwise(edges)
    ]
    found = [item["id"] for window in reversed(windows) for item in window]
    assert found == [item["id"] for item in every]
    for after, window in zip(edges, windows, strict=False):
        assert all(parse_iso(item["createdAt"]) * 10_000 >= after for item in window)
    for before, window in zip(edges[1:], windows, strict=False):
        assert all(parse_iso(item["createdAt"]) * 10_000 < before for item in window)


@pytest.mark.parametrize("path", WINDOWED)
def test_a_window_from_a_records_own_time_has_it_and_one_up_to_it_does_not(path: str) -> None:
    for item in listed(path):
        at = item["createdAt"]
        after = {one["id"] for one in listed(path, createdAfter=at)}
        before = {one["id"] for one in listed(path, createdBefore=at)}
        assert item["id"] in after - before


@given(st.integers(-(10**16), 10**17), st.integers(-14 * 60, 14 * 60))
def test_a_bound_is_the_first_instant_not_before_its_time(at: int, zone: int) -> None:
    text = written(at, timedelta(minutes=zone))
    assert parse_bound(text) == -(-at // 10_000)
    assert parse_iso(text) == at // 10_000
    assert parse_bound(format_iso(parse_iso(text))) == parse_iso(text)
