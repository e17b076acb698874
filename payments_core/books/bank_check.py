"""What the bank has, against the records. Each function asks the bank. Raises BankUnavailable."""

from __future__ import annotations

from collections.abc import Iterator

from payments_core.banks.incoming import FundingBank
from payments_core.banks.port import Bank
from payments_core.books.chain_check import SETTLES_WITHIN_MS
from payments_core.books.differences import DOLLARS, Difference, differ
from payments_core.clock import Instant
from payments_core.onramps.record import BankTransaction
from payments_core.payments.record import Payment, payout_key

_AT_BANK = ("submitted", "settled", "returned")


def check_payouts(
    bank: Bank, partition: str, payment: Payment, *, now: Instant
) -> Iterator[Difference]:
    """The payouts of a Payment, one for each attempt, and none beyond them."""
    current = payment.payout
    if current is None:
        return
    is_settled_down = now - payment.updated_at_ms >= SETTLES_WITHIN_MS
    for attempt in range(1, current.attempt + 2):
        key = payout_key(partition, payment.id, attempt)
        found = bank.find_payout(key)
        is_current = attempt == current.attempt
        if is_current and current.status in _AT_BANK:
            if found is None:
                yield differ(
                    "bank_missing",
                    payment.id,
                    key,
                    DOLLARS,
                    current.amount_cents,
                    0,
                    f"the journal has a payout that is {current.status}, and the bank has none",
                )
            elif found.amount_cents != current.amount_cents:
                yield differ(
                    "bank_amount",
                    payment.id,
                    key,
                    DOLLARS,
                    current.amount_cents,
                    found.amount_cents,
                    "the bank has this payout of another amount",
                )
            elif found.status == "submitted" and current.status != "submitted":
                yield differ(
                    "bank_missing",
                    payment.id,
                    key,
                    DOLLARS,
                    current.amount_cents,
                    0,
                    f"the journal has a payout as {current.status}, and the bank only as submitted",
                )
        elif found is not None and found.status != "returned" and is_settled_down:
            yield differ(
                "bank_extra",
                payment.id,
                key,
                DOLLARS,
                0,
                found.amount_cents,
                f"the bank has a payout as {found.status} that the journal does not have",
            )


def check_incoming(bank: FundingBank, transaction: BankTransaction) -> Iterator[Difference]:
    """A transfer to an on-ramp."""
    found = bank.find_incoming(transaction.incoming_id)
    subject, booked = transaction.incoming_id, transaction.amount_cents
    if found is None:
        detail = "the journal has a transfer that the bank does not know"
        yield differ("bank_missing", transaction.id, subject, DOLLARS, booked, 0, detail)
    elif found.amount_cents != booked:
        detail = "the bank has this transfer of another amount"
        yield differ(
            "bank_amount", transaction.id, subject, DOLLARS, booked, found.amount_cents, detail
        )
    elif transaction.status == "settled" and found.status in ("returned", "cancelled"):
        detail = f"the bank has {found.status} a transfer that was credited"
        yield differ("bank_missing", transaction.id, subject, DOLLARS, booked, 0, detail)
