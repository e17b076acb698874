"""Reports: closed days, movements and payouts, a page at a time, exact to the atom."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import attrs
import pytest

from payments_core.books.closing import DayClosing
from payments_core.books.exporting import add_up_opening, read_movements
from payments_core.books.period import Period, day_of
from payments_core.books.record import CLOSING_ID, ClosedDay, Closing
from payments_core.clock import DAY
from payments_core.errors import ValidationFailed
from payments_core.payments.journal.record import JournalEntry
from payments_core.payments.record import Payment
from payments_core.payments.refunding.operations import NewRefund
from tests.service.books.month import HOUR_S, Month
from tests.service.world import World


class Reported:
    """A month whose days are closed, with a refund on a later day than all else."""

    def __init__(self, world: World) -> None:
        self.month, self.world = Month(world), world
        world.advance(2 * 24 * HOUR_S)
        world.resources.payments.refund(self.month.payment_id, NewRefund(amount="1.000001"))
        world.finish()
        world.advance(2 * 24 * HOUR_S)  # the hourly jobs close the days
        self.today = day_of(world.clock.now())
        self.dates = ((self.today - timedelta(days=12)).isoformat(), self.today.isoformat())

    def all(self, report: Callable[..., Any], limit: int = 3) -> list[Any]:
        """Every row, by pages."""
        found: list[Any] = []
        after = None
        while True:
            page = report(*self.dates, after=after, limit=limit)
            found += page.records
            after = page.next
            if after is None:
                return found


@pytest.fixture
def reported(memory_world: World) -> Reported:
    return Reported(memory_world)


def test_the_movements_are_the_difference_of_the_balances(world: World) -> None:
    reported = Reported(world)
    reports = world.resources.reports
    rows = reported.all(reports.list_balances)
    moved: Counter[tuple[Any, str]] = Counter()
    for one in reported.all(reports.list_transactions):
        for account, amount in one.postings.items():
            moved[one.day, account] += amount
    before: dict[str, int] = {}
    days = [row.day for row in rows]
    assert days == sorted(days)
    for row in rows:
        assert row.turnover.opening == before.get(row.account, 0)
        assert row.turnover.closing - row.turnover.opening == moved.pop((row.day, row.account), 0)
        before[row.account] = row.turnover.closing
    assert not moved
    assert before["recipient"] == 71_339_999
    assert before["excess"] == 1
    assert sum(before.values()) == 0
    # Days on which nothing moved have the balances of the day before.
    assert len(set(days)) == (reported.today - days[0]).days


def test_pages_of_any_size_are_the_same_report(reported: Reported) -> None:
    reports = reported.world.resources.reports
    for report in (reports.list_balances, reports.list_transactions, reports.list_payouts):
        whole = reported.all(report, limit=100)
        assert whole
        for limit in (1, 2, 7):
            assert reported.all(report, limit) == whole


def test_a_closing_in_small_steps_is_the_same(reported: Reported) -> None:
    world = reported.world
    wanted = reported.all(world.resources.reports.list_balances)
    for kind in (ClosedDay, Closing):
        for id in _find_ids(reported, kind):
            reported.month.remove(kind, id)
    closing = DayClosing(world.service.parts.ports, page=1)
    while closing.run(world.environment_id):
        pass
    assert reported.all(world.resources.reports.list_balances) == wanted


def test_an_export_opens_with_what_was_closed(reported: Reported) -> None:
    world = reported.world
    period = Period(reported.today - timedelta(days=2), reported.today)
    read: dict[str, int] = {}

    def note(what: str, count: int) -> None:
        read[what] = count

    opening = add_up_opening(world.storage, world.environment_id, period, note)
    balances = opening.carry()
    for one in read_movements(world.storage, world.environment_id, period, note):
        balances.post(one.asset, one.postings)
    assert read == {"earlier movements": 0, "movements": 1}  # none was read again
    rows = reported.all(world.resources.reports.list_balances)
    last = {row.account: row.turnover.closing for row in rows if row.day == rows[-1].day}
    assert {account: one.closing for _, account, one in balances} == last


@pytest.mark.parametrize(
    ("days", "path", "said"),
    [
        (("2026-09-01", "2026-09-01"), "to", "must be a later day"),
        (("2026-09-01", "2026-10-01"), "to", "must not be later than"),
        (("1999-01-01", "2026-09-01"), "to", "must be at most"),
        (("2026-02-30", "2026-09-01"), "from_", "must be a day of the calendar"),
        (("20260901", "2026-09-02"), "from_", "must be a day of the calendar"),
    ],
)
def test_a_period_is_of_closed_days(
    memory_world: World, days: tuple[str, str], path: str, said: str
) -> None:
    reports = memory_world.resources.reports
    for report in (reports.list_balances, reports.list_transactions, reports.list_payouts):
        with pytest.raises(ValidationFailed) as refused:
            report(*days)
        [fault] = refused.value.fields
        assert (fault.path, said in fault.message) == (path, True), fault


def test_a_balance_waits_for_the_worker_that_closes_its_days(memory_world: World) -> None:
    memory_world.system.advance(3 * DAY // 1_000)  # nobody works
    today = day_of(memory_world.clock.now())
    dates = (today - timedelta(days=1)).isoformat(), today.isoformat()
    with pytest.raises(ValidationFailed, match="is not closed yet"):
        memory_world.resources.reports.list_balances(*dates)
    memory_world.run()
    assert memory_world.resources.reports.list_balances(*dates).records == ()
    closing = memory_world.get(Closing, CLOSING_ID)
    assert closing.closed_until == today.isoformat()


def test_an_entry_that_comes_late_stops_no_closing(reported: Reported) -> None:
    """A commit took ten minutes, or a clock was set back: the day of the entry is closed."""
    world, month = reported.world, reported.month
    closing = world.get(Closing, CLOSING_ID)
    closed = {id: world.get(ClosedDay, id) for id in _find_ids(reported, ClosedDay)}
    late = world.payment("7.00")
    world.pay(late, "7.00")
    world.finish()
    month.change(JournalEntry, f"{late.payment.id}/000001", created_at_ms=closing.after_ms + 1)
    world.advance(2 * 24 * HOUR_S)
    reported.today = day_of(world.clock.now())
    reported.dates = (reported.dates[0], reported.today.isoformat())
    rows = reported.all(world.resources.reports.list_balances)
    assert {id: world.get(ClosedDay, id) for id in closed} == closed, "no closed day has changed"
    assert rows[-1].day == reported.today - timedelta(days=1)
    moved: Counter[str] = Counter()
    for one in reported.all(world.resources.reports.list_transactions):
        moved.update(one.postings)
    last = {row.account: row.turnover.closing for row in rows if row.day == rows[-1].day}
    assert last == {account: amount for account, amount in moved.items() if amount}
    named = {found.resource_id for found in month.compare()[0]}
    assert day_of(closing.after_ms).isoformat() in named, "it lacks the entry, and is named"


def test_a_closed_day_that_lacks_an_entry_is_named(reported: Reported) -> None:
    month = reported.month
    first = reported.today - timedelta(days=12)
    assert month.compare(first)[0] == []
    [day, *_] = [one.day for one in reported.all(reported.world.resources.reports.list_balances)]
    closed = reported.world.get(ClosedDay, day.isoformat())
    turnovers = list(closed.turnovers)
    place = next(n for n, one in enumerate(turnovers) if one.account == "recipient")
    turnovers[place] = attrs.evolve(
        turnovers[place], gained_atomic=turnovers[place].gained_atomic - 1
    )
    month.change(ClosedDay, closed.id, turnovers=tuple(turnovers))
    [found] = month.compare(first)[0]
    assert (found.kind, found.resource_id, found.expected - found.found) == (
        "journal_short",
        closed.id,
        1,
    )


def _find_ids(reported: Reported, kind: type[ClosedDay | Closing]) -> list[str]:
    if kind is Closing:
        return [CLOSING_ID]
    found = reported.world.storage.read(
        reported.world.environment_id,
        lambda snapshot: snapshot.find(ClosedDay, "by_day", limit=100),
    )
    return [one.id for one in found.records]


def test_an_entry_whose_payment_was_removed_stops_neither_closing_nor_report(
    reported: Reported, caplog: pytest.LogCaptureFixture
) -> None:
    """As `payments admin damaged remove` removes a row that cannot be repaired."""
    world, month = reported.world, reported.month
    before = reported.all(world.resources.reports.list_transactions)
    lost = world.payment("7.00")
    world.pay(lost, "7.00")
    world.finish()
    month.remove(Payment, lost.payment.id)
    world.advance(2 * 24 * HOUR_S)
    reported.today = day_of(world.clock.now())
    reported.dates = (reported.dates[0], reported.today.isoformat())
    assert reported.all(world.resources.reports.list_transactions) == before
    rows = reported.all(world.resources.reports.list_balances)
    assert rows[-1].day == reported.today - timedelta(days=1)
    assert f"ALARM: the entry {lost.payment.id}/000001" in caplog.text
    found = [one for one in month.compare()[0] if one.resource_id == lost.payment.id]
    assert {(one.kind, one.subject) for one in found} >= {
        ("journal_over", f"{lost.payment.id}/000001")
    }
