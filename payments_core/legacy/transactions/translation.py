"""A stored record as a transaction of the legacy interface (interface "Transaction").

Nothing is stored for it. The id of a transaction is the id of the record with another prefix, so
the record is found by it again. Pure: related records are loaded before.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import ClassVar, Literal

import attrs

from payments_core.accounts.record import Account
from payments_core.clock import Instant
from payments_core.deposits.record import Deposit
from payments_core.engine.identifiers import LENGTH
from payments_core.field_views import FieldView, instant_view, optional_instant_view
from payments_core.networks import Asset
from payments_core.payments.funding.record import FundingOperation
from payments_core.payments.options.record import PaymentOption
from payments_core.payments.record import Payment
from payments_core.payments.refunds.record import Refund

TransactionType = Literal["deposit", "payment", "settlement"]
TransactionStatus = Literal["pending", "processing", "completed", "failed"]
Origin = Deposit | Payment | FundingOperation | Refund
"""The records that are transactions."""

PREFIXES: Mapping[str, type[Origin]] = {
    "payment": Payment,
    "deposit": Deposit,
    "pay_funding": FundingOperation,
    "refund": Refund,
}
"""The prefix of the ids of each kind of record."""

TYPES: Mapping[type[Origin], tuple[TransactionType, ...]] = {
    Payment: ("payment",),
    Deposit: ("deposit",),
    FundingOperation: ("payment", "settlement"),
    Refund: ("payment",),
}
"""The transaction types of each kind of record."""

STATUSES: Mapping[type[Origin], Mapping[str, TransactionStatus]] = {
    Payment: {
        "awaiting_payment": "pending",
        "processing": "processing",
        "accepted": "processing",
        "executing": "processing",
        "action_required": "processing",
        "succeeded": "completed",
        "partially_refunded": "completed",
        "refunded": "failed",  # the recipient has none of it
        "expired": "failed",
        "cancelled": "failed",
        "failed": "failed",
    },
    Deposit: {
        "detected": "pending",
        "confirmed": "processing",
        "settled": "completed",
        "rejected": "failed",  # the account is not credited with it
        "failed": "failed",
    },
    FundingOperation: {
        "authorized": "pending",
        "broadcast": "processing",
        "unknown": "processing",
        "confirmed": "completed",
        "failed": "failed",
        "expired": "failed",
        "cancelled": "failed",
    },
    Refund: {
        "created": "pending",
        "submitted": "processing",
        "succeeded": "completed",
        "failed": "failed",
    },
}
"""The status of a transaction, by the kind and status of its record.

An operation that was never authorized is not a transaction: it has no row.
"""


@attrs.frozen(kw_only=True)
class Party:
    """One side of a transaction, as far as it is known: an account, an address, or both."""

    account_id: str | None = None
    payment_address: str | None = None
    wallet_address: str | None = None

    @property
    def name(self) -> str | None:
        """The party's name in a list: its payment address, or else its wallet address."""
        return self.payment_address or self.wallet_address


@attrs.frozen(kw_only=True)
class LegacyTransaction:
    """A movement of funds of an account. Its amounts are of `asset`; the payee pays the fee.

    `transaction_hash` is that of the transfer to the payee, after it was sent.
    """

    id: str
    type: TransactionType
    status: TransactionStatus
    asset: Asset
    amount_atomic: int
    fee_atomic: int
    payer: Party
    payee: Party
    transaction_hash: str | None
    created_at_ms: Instant
    completed_at_ms: Instant | None

    created_at: ClassVar[FieldView[datetime]] = instant_view("created_at_ms")
    completed_at: ClassVar[FieldView[datetime | None]] = optional_instant_view("completed_at_ms")


@attrs.frozen(kw_only=True)
class Related:
    """The records that others refer to, by id: Payments, selected options, accounts."""

    payments: Mapping[str, Payment]
    options: Mapping[str, PaymentOption]
    accounts: Mapping[str, Account]

    def party(self, account_id: str | None, address: str | None) -> Party:
        """The side of an account, or of only an address."""
        account = self.accounts.get(account_id or "")
        return Party(
            account_id=account_id,
            payment_address=account.payment_address if account else None,
            wallet_address=address,
        )


def transaction_id(record: Origin) -> str:
    """The transaction id of a record."""
    return f"tx_{record.id[-LENGTH:]}"


def find_option_ids(payments: Iterable[Payment]) -> set[str]:
    """The selected options; that of a vault identifies the vault that pays."""
    return {payment.selected_option_id for payment in payments if payment.selected_option_id}


def find_account_ids(
    records: Iterable[Origin], payments: Iterable[Payment], options: Iterable[PaymentOption]
) -> set[str]:
    """The accounts that are sides of the records."""
    found = {record.account_id for record in records if isinstance(record, Deposit)}
    named: set[str | None] = {option.payer_account_id for option in options}
    for payment in payments:
        named.add(payment.destination.account_id)
        named.add(payment.source.account_id if payment.source else None)
    return found | {id for id in named if id is not None}


def translate(record: Origin, related: Related) -> LegacyTransaction:
    """The transaction of a record. An operation must be authorized."""
    if isinstance(record, Deposit):
        return _translate_deposit(record, related)
    if isinstance(record, Payment):
        return _translate_payment(record, related)
    if isinstance(record, FundingOperation):
        return _translate_funding(record, related)
    return _translate_refund(record, related)


def _translate_deposit(deposit: Deposit, related: Related) -> LegacyTransaction:
    return LegacyTransaction(
        id=transaction_id(deposit),
        type="deposit",
        status=STATUSES[Deposit][deposit.status],
        asset=deposit.asset,
        amount_atomic=deposit.amount_atomic,
        fee_atomic=0,
        payer=Party(wallet_address=deposit.sender),
        payee=related.party(deposit.account_id, deposit.address),
        transaction_hash=deposit.transaction_hash,
        created_at_ms=deposit.created_at_ms,
        completed_at_ms=deposit.settled_at_ms,
    )


def _translate_payment(payment: Payment, related: Related) -> LegacyTransaction:
    return LegacyTransaction(
        id=transaction_id(payment),
        type="payment",
        status=STATUSES[Payment][payment.status],
        asset=payment.asset,
        amount_atomic=payment.amount_atomic,
        fee_atomic=payment.fee_atomic,
        payer=_payer_of(payment, related),
        payee=_recipient_of(payment, related),
        transaction_hash=payment.release_hash,
        created_at_ms=payment.created_at_ms,
        completed_at_ms=payment.succeeded_at_ms,
    )


def _translate_funding(operation: FundingOperation, related: Related) -> LegacyTransaction:
    payment = related.payments[operation.payment_id]
    option = related.options.get(operation.option_id)
    payer = Party()
    if option is not None:
        payer = related.party(option.payer_account_id, option.vault_address)
    return LegacyTransaction(
        id=transaction_id(operation),
        type="settlement" if operation.settlement else "payment",
        status=STATUSES[FundingOperation][operation.status],
        asset=payment.asset,
        amount_atomic=operation.amount_atomic,
        fee_atomic=0,
        payer=payer,
        payee=_recipient_of(payment, related),
        transaction_hash=operation.transaction_hash,
        created_at_ms=operation.created_at_ms,
        completed_at_ms=operation.confirmed_at_ms,
    )


def _translate_refund(refund: Refund, related: Related) -> LegacyTransaction:
    payment = related.payments[refund.payment_id]
    payer = _payer_of(payment, related)
    return LegacyTransaction(
        id=transaction_id(refund),
        type="payment",
        status=STATUSES[Refund][refund.status],
        asset=refund.asset,
        amount_atomic=refund.amount_atomic,
        fee_atomic=0,
        payer=_recipient_of(payment, related),
        payee=payer
        if payer.wallet_address == refund.destination
        else Party(wallet_address=refund.destination),
        transaction_hash=refund.transaction_hash,
        created_at_ms=refund.created_at_ms,
        completed_at_ms=refund.succeeded_at_ms,
    )


def _payer_of(payment: Payment, related: Related) -> Party:
    """The vault that a send or a collect draws on, or else the last payer."""
    if payment.source is not None:
        return related.party(payment.source.account_id, payment.source.address)
    if not payment.paid_by:
        return Party()
    address = payment.paid_by[-1].address
    option = related.options.get(payment.selected_option_id or "")
    is_vault = option is not None and option.vault_address == address
    return related.party(option.payer_account_id if option and is_vault else None, address)


def _recipient_of(payment: Payment, related: Related) -> Party:
    return related.party(payment.destination.account_id, payment.destination.address)
