"""What a Payment received and where its money is, as v2 returns it."""

from __future__ import annotations

from collections.abc import Mapping

from payments_core.clock import format_iso
from payments_core.payments.journal.record import (
    JOURNAL_ACCOUNTS,
    EntryCause,
    JournalBalances,
    JournalEntry,
)
from payments_core.payments.operations import ReceiptsWithJournal
from payments_core_http.v2.options.views import ReceiptView
from payments_core_http.wire.classes import frozen_view


@frozen_view
class EntryView:
    """One movement of a Payment's money: the change of each account, negative for a debit."""

    number: int
    """Its number in the journal, from 1."""
    cause: EntryCause
    """What moved the money."""
    subject: str
    """The id of the receipt, transfer, refund or payout that moved the money."""
    postings: Mapping[str, str]
    """The change of each account, in the smallest unit; negative for a debit. They add up to
    zero."""
    note: str | None
    """What it means, in a sentence, if a reorg undid what the Payment had accepted; else null."""
    createdAt: str


@frozen_view
class JournalView:
    """Where a Payment's money is, and how it got there. The balances add up to zero."""

    balances: Mapping[str, str]
    """What each account holds, in the smallest unit; they add up to zero."""
    entries: tuple[EntryView, ...]
    """The movements, oldest first."""


@frozen_view
class ReceiptsView:
    """What a Payment received, and where its money is."""

    data: tuple[ReceiptView, ...]
    """The receipts."""
    limit: int
    hasNextPage: bool
    nextCursor: str | None
    journal: JournalView
    """Where the Payment's money is, and how it got there."""


def journal(receipts_with_journal: ReceiptsWithJournal) -> JournalView:
    """The journal of a Payment."""
    return JournalView(
        balances=_balances(receipts_with_journal.payment.books),
        entries=tuple(map(_journal_entry, receipts_with_journal.entries)),
    )


def _balances(books: JournalBalances) -> dict[str, str]:
    return {name: str(getattr(books, name)) for name in JOURNAL_ACCOUNTS}


def _journal_entry(entry: JournalEntry) -> EntryView:
    return EntryView(
        number=entry.number,
        cause=entry.cause,
        subject=entry.subject,
        postings={name: str(amount) for name, amount in entry.postings.items()},
        note=entry.note,
        createdAt=format_iso(entry.created_at_ms),
    )
