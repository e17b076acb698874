"""A Payment with its options, receipts and refunds, as callers see it."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

import attrs

from payments_core.brief_repr import brief_repr
from payments_core.errors import NotFound
from payments_core.payments.funding.record import FundingOperation
from payments_core.payments.options.offer import Offer
from payments_core.payments.options.record import PaymentOption
from payments_core.payments.receipts.record import Receipt
from payments_core.payments.record import Payment
from payments_core.payments.refunds.record import Refund
from payments_core.storage.damaged_records import require_row
from payments_core.storage.documents import UnreadableDocument
from payments_core.storage.port import Snapshot, Transaction
from payments_core.storage.reads import Find, Get, Read

_MOST = 100
"""The maximum number of receipts, and of refunds, that are shown with a Payment."""


@attrs.frozen
class OptionDetails:
    """An option, the receipts that count towards it, and what it is paid by besides.

    That is the funding operation if it is a vault's, and the offer if a provider makes it.

    `pending_amount` is the amount seen on its way to the Payment, by any option, that is not
    yet final.

    >>> offered = visitor.public_options.create(payment.id, method="direct")
    >>> offered.option.method, offered.operation
    ('direct', None)
    """

    __repr__ = brief_repr

    payment: Payment
    option: PaymentOption
    operation: FundingOperation | None = None
    receipts: tuple[Receipt, ...] = ()
    pending_atomic: int = 0
    offer: Offer | None = None


@attrs.frozen
class PaymentDetails:
    """A Payment with its options, receipts and refunds.

    `client_secret` and `payment_url` only at its creation, the latter if the public URL is set.

    >>> details = shop.payments.read(paid.id)
    >>> details.payment.status, len(details.receipts)
    ('succeeded', 1)
    """

    __repr__ = brief_repr

    payment: Payment
    options: tuple[OptionDetails, ...] = ()
    receipts: tuple[Receipt, ...] = ()
    client_secret: str | None = attrs.field(default=None, repr=False)
    refunds: tuple[Refund, ...] = ()
    payment_url: str | None = attrs.field(default=None, repr=False)


def load_details(snapshot: Snapshot, payment: Payment) -> PaymentDetails:
    """Everything of a Payment, from one snapshot."""
    if payment.option_ids:
        read_details_ahead(snapshot, [payment])
    receipts = load_receipts(snapshot, payment.id)
    options = tuple(
        load_option_details(snapshot, payment, load_option(snapshot, payment, id), receipts)
        for id in payment.option_ids
    )
    refunds = snapshot.find(Refund, "by_payment", (payment.id,), limit=_MOST).records
    return PaymentDetails(payment, options, receipts, refunds=refunds)


def reads_of_details(payment_id: str) -> tuple[Read, ...]:
    """The queries of `load_details`, which are the same for any Payment."""
    return (
        Find(Receipt, "by_payment", (payment_id,), _MOST),
        Find(Refund, "by_payment", (payment_id,), _MOST),
    )


def read_details_ahead(snapshot: Snapshot, payments: Iterable[Payment]) -> None:
    """Read all that `load_details` needs for these Payments, in one go.

    `load_details` reports a row that cannot be read.
    """
    reads: list[Read] = []
    option_ids: list[str] = []
    for payment in payments:
        reads += reads_of_details(payment.id)
        option_ids += payment.option_ids
    snapshot.read_ahead(*reads, *(Get(PaymentOption, id) for id in option_ids))
    parts: list[Get] = []
    for id in option_ids:
        with suppress(UnreadableDocument):
            option = snapshot.get(PaymentOption, id)
            if option is not None and option.funding_operation_id is not None:
                parts.append(Get(FundingOperation, option.funding_operation_id))
            if option is not None and option.offer_id is not None:
                parts.append(Get(Offer, option.offer_id))
    snapshot.read_ahead(*parts)


def load_receipts(snapshot: Snapshot, payment_id: str) -> tuple[Receipt, ...]:
    """The receipts of a Payment."""
    return snapshot.find(Receipt, "by_payment", (payment_id,), limit=_MOST).records


def load_option(snapshot: Snapshot, payment: Payment, option_id: str) -> PaymentOption:
    """An option of a Payment.

    Raises NotFound, and UnreadableDocument, also if an operator removed its row.
    """
    if option_id not in payment.option_ids:
        raise NotFound("payment option")
    return require_row(PaymentOption, option_id, snapshot.get(PaymentOption, option_id))


def load_option_details(
    snapshot: Snapshot, payment: Payment, option: PaymentOption, receipts: tuple[Receipt, ...]
) -> OptionDetails:
    """The details of an option, with its own receipts among `receipts`.

    Raises UnreadableDocument, also if an operator removed a row of it.
    """
    operation_id, operation = option.funding_operation_id, None
    if operation_id is not None:
        operation = require_row(
            FundingOperation, operation_id, snapshot.get(FundingOperation, operation_id)
        )
    offer = None if option.offer_id is None else snapshot.get(Offer, option.offer_id)
    own = tuple(receipt for receipt in receipts if receipt.option_id == option.id)
    pending_amount = sum_pending_amount(payment, receipts)
    return OptionDetails(payment, option, operation, own, pending_amount, offer)


def sum_pending_amount(payment: Payment, receipts: Iterable[Receipt]) -> int:
    """The amount that was seen and is not final yet.

    Receipts that cannot count are excluded: anybody can create a token.
    """
    asset = payment.asset
    return sum(
        receipt.amount_atomic
        for receipt in receipts
        if receipt.status == "observed"
        and (receipt.chain_id, receipt.token_address) == (asset.chain_id, asset.address)
    )


def lock_payment(tx: Transaction, payment_id: str) -> Payment:
    """The Payment, locked. Raises NotFound."""
    payment = tx.get(Payment, payment_id, for_update=True)
    if payment is None:
        raise NotFound("payment")
    return payment


def lock_option(tx: Transaction, option_id: str) -> PaymentOption:
    """An option that is known to exist, locked."""
    option = tx.get(PaymentOption, option_id, for_update=True)
    assert option is not None
    return option


def lock_operation(tx: Transaction, option: PaymentOption) -> FundingOperation | None:
    """The funding operation of an option, locked; None if no vault pays by it."""
    if option.funding_operation_id is None:
        return None
    operation = tx.get(FundingOperation, option.funding_operation_id, for_update=True)
    assert operation is not None
    return operation


def lock_vault_option(tx: Transaction, option_id: str) -> tuple[PaymentOption, FundingOperation]:
    """A Vault option that is known to exist and its operation, locked in that order."""
    option = lock_option(tx, option_id)
    operation = lock_operation(tx, option)
    assert operation is not None
    return option, operation
