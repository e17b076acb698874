"""Reports of a period, for a partner: balances by day, movements, and payouts (contract §17)."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Annotated

import attrs
from msgspec import Meta

from payments_core.books.balances import Balances, Turnover
from payments_core.books.closed_days import find_closed, find_closed_before
from payments_core.books.movements import Movement, find_movements
from payments_core.books.period import EPOCH, Period, require_closed
from payments_core.books.record import CLOSING_ID, Closing
from payments_core.engine.ports import Ports
from payments_core.errors import FieldError, ValidationFailed
from payments_core.networks import Asset
from payments_core.payments.record import Payment
from payments_core.storage.port import Page, Position, Snapshot, Where
from payments_core.storage.query_semantics import validate_position
from payments_core.tenants.authorization import Authority
from payments_core.validation.fields import PageLimit

Day = Annotated[
    str,
    Meta(
        min_length=10,
        max_length=10,
        extra={"format": "date", "rule": "a day such as 2026-11-01"},
    ),
]


@attrs.frozen(kw_only=True)
class DayBalance:
    """What an account of the journal had on a day in UTC, of one asset."""

    day: date
    asset: Asset
    account: str
    turnover: Turnover


class BookReports:
    """Reads the books of an environment, a page at a time.

    A period is the days `from_` to before `to`, in UTC. Its days must be closed, and then a report
    of it never changes.
    """

    def __init__(self, ports: Ports) -> None:
        self._storage = ports.storage
        self._clock = ports.clock

    def list_balances(
        self,
        authority: Authority,
        from_: Day,
        to: Day,
        *,
        after: Position | None = None,
        limit: PageLimit = 50,
    ) -> Page[DayBalance]:
        """The opening and closing balance of each account on each day, and what moved it.

        For each account the opening balance, with what was gained and without what was lost, is the
        closing balance, and that opens the next day. Raises ValidationFailed, also for a day that
        no worker has closed yet.
        """
        period = self._read_period(from_, to)
        if after is not None:
            validate_position(after, str, int)

        def load(snapshot: Snapshot) -> Page[DayBalance]:
            _require_added_up(snapshot.get(Closing, CLOSING_ID), period)
            return _find_balances(snapshot, period, after, limit)

        return self._storage.read(authority.partition, load)

    def list_transactions(
        self,
        authority: Authority,
        from_: Day,
        to: Day,
        *,
        after: Position | None = None,
        limit: PageLimit = 50,
    ) -> Page[Movement]:
        """Every movement, oldest first. The sum of an account's movements is the difference of its
        balances. Raises ValidationFailed."""
        period = self._read_period(from_, to)
        return self._storage.read(
            authority.partition, lambda snapshot: find_movements(snapshot, period, after, limit)
        )

    def list_payouts(
        self,
        authority: Authority,
        from_: Day,
        to: Day,
        *,
        after: Position | None = None,
        limit: PageLimit = 50,
    ) -> Page[Payment]:
        """The Payments to bank accounts that were created in the period, newest first, as they are
        now: a payout settles and may come back later. Raises ValidationFailed."""
        period = self._read_period(from_, to)
        start = (period.until, "") if after is None else after

        def load(snapshot: Snapshot) -> Page[Payment]:
            sends = (Where("intent", "=", "send"),)
            page = snapshot.find(Payment, "by_created", where=sends, after=start, limit=limit)
            inside = [one for one in page.records if one.created_at_ms >= period.since]
            is_over = page.next is None or page.next[0] < period.since  # type: ignore[operator]
            paid_out = tuple(one for one in inside if one.payout is not None)
            return Page(paid_out, None if is_over else page.next)

        return self._storage.read(authority.partition, load)

    def _read_period(self, from_: str, to: str) -> Period:
        first, end = date.fromisoformat(from_), date.fromisoformat(to)
        return require_closed(first, end, self._clock.now())


def _require_added_up(closing: Closing | None, period: Period) -> None:
    """Raise ValidationFailed for days that no worker has closed yet."""
    until = EPOCH.isoformat() if closing is None else closing.closed_until
    if until < period.end.isoformat():
        message = "is not closed yet: the hourly job of a worker closes a day within two hours"
        raise ValidationFailed((FieldError("to", message),))


def _find_balances(
    snapshot: Snapshot, period: Period, after: Position | None, limit: int
) -> Page[DayBalance]:
    begin, skipped = period.first, 0
    if after is not None:
        begin, skipped = date.fromisoformat(str(after[0])), int(str(after[1])) + 1
    before = find_closed_before(snapshot, begin)
    balances = Balances() if before is None else before.balances.carry()
    # Each of these days has at least one row, so that no later day is needed for the page.
    closed = {one.day: one for one in find_closed(snapshot, begin, period.end, limit + 1)}
    rows: list[tuple[Position, DayBalance]] = []
    day = begin
    while day < period.end and len(rows) <= limit:
        found = closed.get(day.isoformat())
        shown = balances if found is None else found.balances
        for place, (asset, account, turnover) in enumerate(shown):
            if day != begin or place >= skipped:
                one = DayBalance(day=day, asset=asset, account=account, turnover=turnover)
                rows.append(((day.isoformat(), place), one))
        balances = shown.carry()
        day += timedelta(days=1)
    next = rows[limit - 1][0] if len(rows) > limit else None
    return Page(tuple(one for _, one in rows[:limit]), next)
