"""Closed days against the entries of their journal, which a comparison reads anyway."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from payments_core.books.balances import Balances, Place, Turnover
from payments_core.books.closed_days import find_closed
from payments_core.books.differences import Difference, differ
from payments_core.books.period import Period, day_of
from payments_core.books.record import CLOSING_ID, Closing
from payments_core.clock import Instant
from payments_core.networks import Asset
from payments_core.storage.port import Snapshot


class DayTotals:
    """What moved on each day of a period, by asset and account. Its size is that of the days."""

    def __init__(self) -> None:
        self._days: dict[str, Balances] = {}

    def post(self, at_ms: Instant, asset: Asset, postings: Mapping[str, int]) -> None:
        """Add an entry."""
        self._days.setdefault(day_of(at_ms).isoformat(), Balances()).post(asset, postings)

    def check(self, snapshot: Snapshot, period: Period) -> Iterator[Difference]:
        """The closed days that have something else than their entries: no day is closed twice."""
        closing = snapshot.get(Closing, CLOSING_ID)
        if closing is None:
            return
        days = find_closed(snapshot, period.first, period.end, len(period.days))
        closed = {one.day: one.balances for one in days}
        for day in sorted(self._days.keys() | closed.keys()):
            if day < closing.closed_until:
                booked = self._days.get(day, Balances())
                yield from _compare(day, booked, closed.get(day, Balances()))


def _compare(day: str, booked: Balances, closed: Balances) -> Iterator[Difference]:
    wanted, found = _moved(booked), _moved(closed)
    for place in sorted(wanted.keys() | found.keys(), key=str):
        asset, account = place
        expected, there = wanted.get(place, Turnover()), found.get(place, Turnover())
        for what, one, other in (
            ("gained", expected.gained, there.gained),
            ("lost", expected.lost, there.lost),
        ):
            if one != other:
                kind = "journal_over" if other > one else "journal_short"
                detail = f"the closed day has another sum of what {account} {what} than its entries"
                subject = f"{day}/{account}"
                yield differ(kind, day, subject, asset, one, other, detail)  # type: ignore[arg-type]


def _moved(balances: Balances) -> dict[Place, Turnover]:
    return {(asset, account): one for asset, account, one in balances if one.gained or one.lost}
