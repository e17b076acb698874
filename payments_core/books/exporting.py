"""Exports of a closed period: what it opens with, its movements, and the form they are written in.

The memory that an export takes does not depend on how many movements there are. Pages are read as
the file is written, so the service answers as usual meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta

from payments_core.books.balances import Balances
from payments_core.books.closed_days import find_closed_before
from payments_core.books.movements import Movement, iter_movements
from payments_core.books.period import EPOCH, Period
from payments_core.storage.maintenance import Progress
from payments_core.storage.port import Storage

_EVERY = 1_000


def add_up_opening(
    storage: Storage, partition: str, period: Period, progress: Progress
) -> Balances:
    """What each account had when the period began.

    It is that of the last closed day before, with the movements since; without closed days, as
    before the first worker runs, all earlier movements are added up.
    """
    closed = storage.read(partition, lambda snapshot: find_closed_before(snapshot, period.first))
    balances, begin = Balances(), EPOCH
    if closed is not None:
        balances = closed.balances.carry()
        begin = date.fromisoformat(closed.day) + timedelta(days=1)
    if begin < period.first:
        earlier = iter_movements(storage, partition, Period(begin, period.first))
        for one in _count(earlier, "earlier movements", progress):
            balances.post(one.asset, one.postings)
    return balances


def read_movements(
    storage: Storage, partition: str, period: Period, progress: Progress
) -> Iterator[Movement]:
    """The movements of the period, in their order."""
    return _count(iter_movements(storage, partition, period), "movements", progress)


def _count(movements: Iterator[Movement], name: str, progress: Progress) -> Iterator[Movement]:
    number = 0
    for number, one in enumerate(movements, start=1):
        yield one
        if number % _EVERY == 0:
            progress(name, number)
    progress(name, number)
