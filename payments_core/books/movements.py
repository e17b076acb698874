"""Movements: the entries of both journals, with what they belong to, in one order.

A movement says only what never changes once its period is closed: so a report of a closed period
has the same bytes whenever it is made.
"""

from __future__ import annotations

import heapq
import logging
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from functools import partial

import attrs

from payments_core.books.pages import iter_forward
from payments_core.books.period import Period, day_of
from payments_core.clock import Instant
from payments_core.networks import Asset
from payments_core.onramps.record import BankTransaction, FundingEntry
from payments_core.payments.journal.record import JournalEntry
from payments_core.payments.receipts.record import Receipt
from payments_core.payments.record import Payment
from payments_core.payments.refunds.record import Refund
from payments_core.storage.port import Page, Position, Snapshot, Storage

PAGE = 500

_log = logging.getLogger(__name__)


@attrs.frozen(kw_only=True)
class Movement:
    """One entry of a journal. `postings` are by account, and add up to zero.

    It belongs to a Payment or to a bank transfer. `subject` is the receipt, transfer, refund or
    payout that moved the money, and `transaction_hash` is the transaction of a receipt, of a
    transfer to the recipient, or of a refund.
    """

    id: str
    at_ms: Instant
    cause: str
    subject: str
    payment_id: str | None = None
    bank_transaction_id: str | None = None
    intent: str
    account_id: str | None
    external_user_id: str | None
    reference: str | None = None
    description: str | None = None
    asset: Asset
    postings: Mapping[str, int]
    transaction_hash: str | None = None
    note: str | None = None
    begun_at_ms: Instant

    @property
    def day(self) -> date:
        """Its day in UTC."""
        return day_of(self.at_ms)

    @property
    def owner_id(self) -> str:
        """The Payment or the bank transfer that it belongs to."""
        return self.payment_id or str(self.bank_transaction_id)

    @property
    def position(self) -> Position:
        """Its place in the order of all movements."""
        return self.at_ms, self.id


def iter_movements(storage: Storage, partition: str, period: Period) -> Iterator[Movement]:
    """The movements of a period, in pages of one snapshot each. Raises StorageUnavailable."""
    yield from heapq.merge(
        _iter_of_payments(storage, partition, period),
        _iter_of_transactions(storage, partition, period),
        key=lambda movement: movement.position,
    )


def find_movements(
    snapshot: Snapshot, period: Period, after: Position | None, limit: int
) -> Page[Movement]:
    """A page of the movements of a period."""
    start = (period.since, "") if after is None else after
    entries = snapshot.find(JournalEntry, "by_created", after=start, limit=limit + 1).records
    booked = snapshot.find(FundingEntry, "by_created", after=start, limit=limit + 1).records
    here = [*map(_place, entries), *map(_place, booked)]
    places = sorted(place for place in here if place[0] < period.until)
    shown = set(places[:limit])
    movements = [
        *_describe(snapshot, [entry for entry in entries if _place(entry) in shown]),
        *_describe_funding(snapshot, [entry for entry in booked if _place(entry) in shown]),
    ]
    movements.sort(key=lambda movement: movement.position)
    return Page(tuple(movements), places[limit - 1] if len(places) > limit else None)


def _place(entry: JournalEntry | FundingEntry) -> tuple[int, str]:
    return entry.created_at_ms, entry.id


def _iter_of_payments(storage: Storage, partition: str, period: Period) -> Iterator[Movement]:
    for entries in iter_forward(storage, partition, JournalEntry, period, PAGE):
        yield from storage.read(partition, partial(_describe, entries=entries))


def _iter_of_transactions(storage: Storage, partition: str, period: Period) -> Iterator[Movement]:
    for entries in iter_forward(storage, partition, FundingEntry, period, PAGE):
        yield from storage.read(partition, partial(_describe_funding, entries=entries))


def _describe(snapshot: Snapshot, entries: Sequence[JournalEntry]) -> list[Movement]:
    """The movements of entries. One whose Payment was removed has no asset, and is left out with an
    alarm; a comparison names it."""
    payments = snapshot.get_many(Payment, {entry.payment_id for entry in entries})
    subjects = {
        kind: {entry.subject for entry in entries if entry.cause in causes}
        for kind, causes in (
            ("receipt", ("receipt", "receipt_reorged")),
            ("refund", ("refund", "refund_reorged")),
        )
    }
    receipts = snapshot.get_many(Receipt, subjects["receipt"])
    refunds = snapshot.get_many(Refund, subjects["refund"])
    hashes = {
        **{one.id: one.transaction_hash for one in receipts.values()},
        **{one.id: one.transaction_hash for one in refunds.values()},
        **{str(one.release_id): one.release_hash for one in payments.values()},
    }
    return [
        _of_payment(entry, payments[entry.payment_id], hashes.get(entry.subject))
        for entry in entries
        if _has_owner(entry, entry.payment_id in payments)
    ]


def _has_owner(entry: JournalEntry | FundingEntry, is_there: bool) -> bool:
    if not is_there:
        _log.critical("ALARM: the entry %s is in no book: what it belongs to was removed", entry.id)
    return is_there


def _of_payment(entry: JournalEntry, payment: Payment, hash: str | None) -> Movement:
    source = payment.source if payment.intent == "send" else None
    return Movement(
        id=entry.id,
        at_ms=entry.created_at_ms,
        cause=entry.cause,
        subject=entry.subject,
        payment_id=payment.id,
        intent=payment.intent,
        account_id=payment.account_id if source is None else source.account_id,
        external_user_id=payment.external_user_id if source is None else source.external_user_id,
        reference=payment.reference,
        description=payment.description,
        asset=payment.asset,
        postings=entry.postings,
        transaction_hash=hash,
        note=entry.note,
        begun_at_ms=payment.created_at_ms,
    )


def _describe_funding(snapshot: Snapshot, entries: Sequence[FundingEntry]) -> list[Movement]:
    found = snapshot.get_many(BankTransaction, {entry.transaction_id for entry in entries})
    movements = []
    for entry in entries:
        if not _has_owner(entry, entry.transaction_id in found):
            continue
        transaction = found[entry.transaction_id]
        is_credit = entry.cause in ("credit", "credit_reorged")
        movements.append(
            Movement(
                id=entry.id,
                at_ms=entry.created_at_ms,
                cause=entry.cause,
                subject=transaction.incoming_id,
                bank_transaction_id=transaction.id,
                intent="fund",
                account_id=transaction.account_id,
                external_user_id=transaction.external_user_id,
                asset=transaction.destination.asset,
                postings=entry.postings,
                transaction_hash=transaction.transaction_hash if is_credit else None,
                begun_at_ms=transaction.created_at_ms,
            )
        )
    return movements
