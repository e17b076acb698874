"""Closes days: a part of the hourly purge, since each environment has one.

A report of a balance reads closed days, and never adds up an environment's past. A day is closed
ten minutes after its end (`period.CLOSES_AFTER_MS`): the movements of it are added up, page by
page, and each page continues where the last one was committed.
"""

from __future__ import annotations

from datetime import date

import attrs

from payments_core.books.balances import Balances
from payments_core.books.movements import Movement, find_movements
from payments_core.books.period import EPOCH, Period, closed_until
from payments_core.books.record import CLOSING_ID, ClosedDay, Closing, pack, unpack
from payments_core.engine.decision import Decision, WorkerAuthority
from payments_core.engine.identifiers import IdSequence
from payments_core.engine.ports import Ports
from payments_core.evolve import evolve
from payments_core.storage.port import Page, Snapshot, Transaction

PAGE = 500
"""How many movements are added up in one commit."""

MAX_PAGES = 20
"""After so many pages the job returns, and continues soon."""


@attrs.frozen
class _Page:
    """Movements that no closing has added up yet, and whether there are more before `until`."""

    closing: Closing | None
    movements: Page[Movement]
    until: date


class DayClosing:
    """Closes the days of an environment; if stopped anywhere, it continues."""

    def __init__(self, ports: Ports, *, page: int = PAGE) -> None:
        self._storage = ports.storage
        self._committer = ports.committer
        self._clock = ports.clock
        self._page = page

    def run(self, partition: str) -> bool:
        """Close what can be closed, at most some pages of it; True if there is more.

        Raises StorageUnavailable, Unavailable.
        """
        return all(self._close_page(partition) for _ in range(MAX_PAGES))

    def _close_page(self, partition: str) -> bool:
        """Add up a page; True if another one follows."""
        until = closed_until(self._clock.now())
        found = self._storage.read(partition, lambda snapshot: self._load(snapshot, until))
        closing = found.closing
        if closing is not None and closing.closed_until >= until.isoformat():
            return False
        after, days = _continue(closing, found)

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[bool]:
            stored = tx.get(Closing, CLOSING_ID, for_update=True)
            if (stored.version if stored else 0) != after.version:
                return Decision(True)  # another worker was faster
            return Decision(
                found.movements.next is not None,
                inserts=(*days, *(() if stored else (after,))),
                replaces=(after,) if stored else (),
            )

        return self._committer.commit(WorkerAuthority(partition, "upkeep"), decide)

    def _load(self, snapshot: Snapshot, until: date) -> _Page:
        closing = snapshot.get(Closing, CLOSING_ID)
        if closing is not None and closing.closed_until >= until.isoformat():
            return _Page(closing, Page((), None), until)
        place = None if closing is None else (closing.after_ms, closing.after_id)
        movements = find_movements(snapshot, Period(EPOCH, until), place, self._page)
        return _Page(closing, movements, until)


def _continue(closing: Closing | None, found: _Page) -> tuple[Closing, list[ClosedDay]]:
    """The closing after a page, and the days that end in it."""
    before = closing or Closing(id=CLOSING_ID, closed_until=EPOCH.isoformat())
    balances, day = unpack(before.turnovers), before.day
    days: list[ClosedDay] = []
    for one in found.movements.records:
        # A closed day never changes: the first open one has what comes late, as by a clock that
        # was set back.
        of_it = max(one.day.isoformat(), before.closed_until)
        if day is not None and of_it != day:
            days.append(ClosedDay(id=day, turnovers=pack(balances)))
            balances = balances.carry()
        day = of_it
        balances.post(one.asset, one.postings)
    last = found.movements.records[-1] if found.movements.records else None
    after = evolve(
        before,
        after_ms=before.after_ms if last is None else last.at_ms,
        after_id=before.after_id if last is None else last.id,
    )
    if found.movements.next is not None:
        return evolve(after, day=day, turnovers=pack(balances)), days
    return _end(after, balances, day, days, found.until)


def _end(
    closing: Closing, balances: Balances, day: str | None, days: list[ClosedDay], until: date
) -> tuple[Closing, list[ClosedDay]]:
    """All movements before `until` are added up: their last day is closed too."""
    if day is not None:
        days = [*days, ClosedDay(id=day, turnovers=pack(balances))]
        balances = balances.carry()
    ended = evolve(closing, closed_until=until.isoformat(), day=None, turnovers=pack(balances))
    return ended, days
