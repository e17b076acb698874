"""Reads of closed days."""

from __future__ import annotations

from datetime import date

from payments_core.books.record import ClosedDay
from payments_core.storage.port import Snapshot


def find_closed_before(snapshot: Snapshot, day: date) -> ClosedDay | None:
    """The last closed day before a day on which something moved; None if there is none."""
    after = (day.isoformat(), "")
    found = snapshot.find(ClosedDay, "newest", after=after, limit=1).records
    return found[0] if found else None


def find_closed(snapshot: Snapshot, first: date, end: date, limit: int) -> tuple[ClosedDay, ...]:
    """The closed days from `first` to before `end` on which something moved, at most `limit`."""
    after = (first.isoformat(), "")
    found = snapshot.find(ClosedDay, "by_day", after=after, limit=limit).records
    return tuple(one for one in found if one.day < end.isoformat())
