"""Posting to a Payment's books. Pure."""

from __future__ import annotations

import attrs

from payments_core.clock import Instant
from payments_core.money import Atomic
from payments_core.payments.journal.record import ACCOUNTS, Books, Cause, Entry


def post(
    books: Books,
    payment_id: str,
    number: int,
    cause: Cause,
    subject: str,
    *,
    now: Instant,
    **amounts: int,
) -> tuple[Books, Entry]:
    """The books after a movement, and its entry. Raises Unbalanced.

    `amounts` are by account, positive for what an account gains.
    """
    after = attrs.evolve(
        books, **{name: getattr(books, name) + amount for name, amount in amounts.items()}
    )
    entry = Entry(
        id=f"{payment_id}/{number:06}",
        payment_id=payment_id,
        number=number,
        cause=cause,
        subject=subject,
        postings={name: Atomic(amounts[name]) for name in ACCOUNTS if amounts.get(name)},
        created_at=now,
    )
    return after, entry
