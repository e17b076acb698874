"""The journal against what was verified and finished. Pure.

The records of receipts, refunds, transfers and payouts are written by the commit that posts the
entry, so each says how much its entries must add up to.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal

from payments_core.books.differences import Difference, differ
from payments_core.books.payment_case import PaymentCase
from payments_core.networks import Asset
from payments_core.onramps.record import BOOK_ACCOUNTS, BankTransaction, FundingEntry
from payments_core.payments.journal.record import JOURNAL_ACCOUNTS, JournalEntry

Group = Literal["receipt", "refund", "transfer", "payout", "settlement"]
Subject = tuple[Group, str]
"""What entries belong together, and the receipt, refund, transfer or payout that they are of."""

Measure = Callable[[Mapping[str, int]], int]


def _less(account: str) -> Measure:
    return lambda postings: -postings.get(account, 0)


def _more(account: str) -> Measure:
    return lambda postings: postings.get(account, 0)


_MEASURES: Mapping[str, tuple[tuple[Group, Measure], ...]] = {
    "receipt": (("receipt", _less("payer")),),
    "receipt_reorged": (("receipt", _less("payer")),),
    "release": (("transfer", _less("escrow")),),
    "release_reorged": (("transfer", _less("escrow")),),
    "send": (("transfer", _less("payer")),),
    "send_reorged": (("transfer", _less("payer")),),
    "refund": (("refund", _more("payer")),),
    "refund_reorged": (("refund", _more("payer")),),
    "payout_submitted": (("payout", _less("offramp")),),
    "payout_settled": (("settlement", _more("recipient")),),
    "payout_returned": (("payout", _less("offramp")), ("settlement", _more("recipient"))),
}
"""By an entry's cause: what it adds to its subject, and how much by its postings."""


def check_payment(case: PaymentCase) -> Iterator[Difference]:
    """The differences between a Payment's journal and its records."""
    payment = case.payment
    expected, found = _expect(case), _sum_up(case.entries)
    named = [
        _compare(payment.id, id, payment.asset, expected[group, id], found[group, id], group)
        for group, id in sorted(expected.keys() | found.keys())
        if expected[group, id] != found[group, id]
    ]
    yield from named
    if named:
        return  # the same fault would show in the numbers and the balances
    yield from _check_rows(payment.id, payment.asset, payment.entry_count, case.entries)
    books = {str(name): int(getattr(payment.books, name)) for name in JOURNAL_ACCOUNTS}
    yield from _check_balances(payment.id, payment.asset, books, case.entries)


def check_bank_transaction(
    transaction: BankTransaction, entries: Sequence[FundingEntry]
) -> Iterator[Difference]:
    """The same of a bank transfer to an on-ramp."""
    asset, amount = transaction.destination.asset, transaction.amount_atomic
    has_arrived = transaction.received_at_ms is not None and transaction.status != "failed"
    is_here = has_arrived and transaction.status != "refunded"
    expected = {
        "sender": -amount if is_here else 0,
        "recipient": amount if transaction.status == "settled" else 0,
    }
    found = _add_up(entries)
    named = [
        _compare(
            transaction.id, f"{transaction.id}/{name}", asset, abs(wanted), abs(found[name]), name
        )
        for name, wanted in expected.items()
        if found[name] != wanted
    ]
    yield from named
    if named:
        return
    yield from _check_rows(transaction.id, asset, transaction.entries, entries)
    books = {str(name): int(getattr(transaction.books, name)) for name in BOOK_ACCOUNTS}
    yield from _check_balances(transaction.id, asset, books, entries)


def _expect(case: PaymentCase) -> Counter[Subject]:
    payment = case.payment
    wanted: Counter[Subject] = Counter()
    for receipt in case.receipts:
        if receipt.status == "verified":
            wanted["receipt", receipt.id] = receipt.amount_atomic
    for refund in case.refunds:
        if refund.status == "succeeded":
            wanted["refund", refund.id] = refund.amount_atomic
    if case.is_released and payment.release_id is not None:
        wanted["transfer", payment.release_id] = payment.released_atomic
    payout = payment.payout
    if payout is not None and payout.status in ("submitted", "settled"):
        wanted["payout", payout.key] = payment.amount_atomic
    if payout is not None and payout.status == "settled":
        wanted["settlement", payout.key] = payment.amount_atomic
    return wanted


def _sum_up(entries: Sequence[JournalEntry]) -> Counter[Subject]:
    found: Counter[Subject] = Counter()
    for entry in entries:
        for group, measure in _MEASURES[entry.cause]:
            found[group, entry.subject] += measure(entry.postings)
    return found


def _compare(
    resource_id: str, subject: str, asset: Asset, expected: int, found: int, of: str
) -> Difference:
    if found < expected:
        kind, much = ("journal_short", "less") if found else ("journal_missing", "nothing")
        detail = f"the journal has {much} of this {of}"
        return differ(kind, resource_id, subject, asset, expected, found, detail)  # type: ignore[arg-type]
    detail = f"the journal has more of this {of}"
    return differ("journal_over", resource_id, subject, asset, expected, found, detail)


def _check_rows(
    resource_id: str, asset: Asset, count: int, entries: Sequence[JournalEntry | FundingEntry]
) -> Iterator[Difference]:
    """The entries are numbered without a gap, and each adds up to zero."""
    numbers = {entry.number for entry in entries}
    for number in sorted(set(range(1, count + 1)) - numbers):
        id, detail = f"{resource_id}/{number:06}", "this entry is gone"
        yield differ("journal_missing", resource_id, id, asset, 1, 0, detail)
    for entry in entries:
        total = sum(entry.postings.values())
        if entry.number > count:
            detail = f"the journal has more than {count} entries"
            yield differ("journal_over", resource_id, entry.id, asset, 0, 1, detail)
        if total:
            kind = "journal_over" if total > 0 else "journal_short"
            detail = "the postings of this entry do not add up to zero"
            yield differ(kind, resource_id, entry.id, asset, 0, total, detail)  # type: ignore[arg-type]


def _check_balances(
    resource_id: str,
    asset: Asset,
    books: Mapping[str, int],
    entries: Sequence[JournalEntry | FundingEntry],
) -> Iterator[Difference]:
    """The entries add up to the balances that the resource shows."""
    found = _add_up(entries)
    for name, wanted in books.items():
        if found[name] != wanted:
            kind = "journal_over" if found[name] > wanted else "journal_short"
            yield differ(
                kind,  # type: ignore[arg-type]
                resource_id,
                f"{resource_id}/{name}",
                asset,
                wanted,
                found[name],
                f"the entries do not add up to the balance of the account {name}",
            )


def _add_up(entries: Sequence[JournalEntry | FundingEntry]) -> Counter[str]:
    total: Counter[str] = Counter()
    for entry in entries:
        for name, amount in entry.postings.items():
            total[name] += amount
    return total
