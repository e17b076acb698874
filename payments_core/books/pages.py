"""Walks through the rows of a period, page by page, each page in a snapshot of its own.

Entries are never changed and never removed, and a closed period gets no more of them, so the pages
together are the whole.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

from payments_core.books.period import Period
from payments_core.onramps.record import BankTransaction, FundingEntry
from payments_core.payments.journal.record import JournalEntry
from payments_core.payments.record import Payment
from payments_core.storage.port import Page, Position, Storage
from payments_core.storage.records import R

Begun = TypeVar("Begun", bound=Payment | BankTransaction)
Booked = TypeVar("Booked", bound=JournalEntry | FundingEntry)


def iter_newest(
    storage: Storage, partition: str, kind: type[Begun], period: Period, limit: int
) -> Iterator[tuple[Begun, ...]]:
    """The Payments or bank transfers that began in the period, newest first."""
    after: Position | None = (period.until, "")
    while after is not None:
        page = _find(storage, partition, kind, after, limit)
        inside = tuple(one for one in page.records if one.created_at_ms >= period.since)
        if inside:
            yield inside
        after = page.next if len(inside) == len(page.records) else None


def iter_forward(
    storage: Storage, partition: str, kind: type[Booked], period: Period, limit: int
) -> Iterator[tuple[Booked, ...]]:
    """The entries of the period, in their order: by instant, then by id."""
    after: Position | None = (period.since, "")
    while after is not None:
        page = _find(storage, partition, kind, after, limit)
        inside = tuple(one for one in page.records if one.created_at_ms < period.until)
        if inside:
            yield inside
        after = page.next if len(inside) == len(page.records) else None


def _find(storage: Storage, partition: str, kind: type[R], after: Position, limit: int) -> Page[R]:
    return storage.read(
        partition, lambda snapshot: snapshot.find(kind, "by_created", after=after, limit=limit)
    )
