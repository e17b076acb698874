"""Posting to a Payment's books. Pure."""

from __future__ import annotations

from payments_core.clock import Instant
from payments_core.evolve import evolve
from payments_core.money import Atomic
from payments_core.payments.journal.record import (
    JOURNAL_ACCOUNTS,
    EntryCause,
    JournalBalances,
    JournalEntry,
)


def post(
    books: JournalBalances,
    payment_id: str,
    number: int,
    cause: EntryCause,
    subject: str,
    *,
    now: Instant,
    **amounts: int,
) -> tuple[JournalBalances, JournalEntry]:
    """The books after a movement, and its entry. Raises Unbalanced.

    `amounts` are by account, positive if an account gains.
    """
    after = evolve(
        books, **{name: getattr(books, name) + amount for name, amount in amounts.items()}
    )
    entry = JournalEntry(
        id=f"{payment_id}/{number:06}",
        payment_id=payment_id,
        number=number,
        cause=cause,
        subject=subject,
        postings={name: Atomic(amounts[name]) for name in JOURNAL_ACCOUNTS if amounts.get(name)},
        created_at_ms=now,
    )
    return after, entry
