"""Payments as v2 gives them out to a partner's backend (contract §6)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from payments_core.clock import iso, iso_or_none
from payments_core.money import format_amount
from payments_core.payments.details import OptionDetails, PaymentDetails
from payments_core.payments.links import Links
from payments_core.payments.record import Destination, Payment
from payments_core_http.v2 import option_views
from payments_core_http.v2.option_views import FundingOperationView, OptionView, ReceiptView


@attrs.frozen(kw_only=True, slots=False)
class Fees:
    """What the recipient pays, frozen at creation; the amount is what the release keeps back."""

    feeBps: int
    feeAmountAtomic: str
    paidBy: str


@attrs.frozen(kw_only=True, slots=False)
class DestinationView:
    """Who is paid."""

    type: str
    accountId: str | None
    externalUserId: str | None
    paymentAddress: str | None
    address: str


@attrs.frozen(kw_only=True, slots=False)
class Escrow:
    """Where the Payment's funds are received."""

    chainId: int
    address: str


@attrs.frozen(kw_only=True, slots=False)
class PaymentOptionEntry:
    """An option of the Payment, its funding operation, and the authorization's metadata."""

    option: OptionView
    fundingOperation: FundingOperationView
    metadata: Mapping[str, Any] | None


@attrs.frozen(kw_only=True, slots=False)
class ReconciliationView:
    """What is out of the ordinary, and whether it was settled."""

    status: str
    labels: tuple[str, ...]
    resolution: str | None
    resolvedAt: str | None


@attrs.frozen(kw_only=True, slots=False)
class TimelineView:
    """A status and when it began."""

    status: str
    at: str
    reason: str | None


@attrs.frozen(kw_only=True, slots=False)
class Failure:
    """Why the execution failed."""

    reason: str


@attrs.frozen(kw_only=True, slots=False)
class PaymentView:
    """A Payment, whole."""

    id: str
    paymentId: str
    intent: str
    status: str
    statusVersion: int
    accountId: str | None
    externalUserId: str | None
    amount: str
    amountAtomic: str
    assetSymbol: str
    decimals: int
    chainId: int
    tokenAddress: str
    receivedAmountAtomic: str
    remainingAmountAtomic: str
    excessAmountAtomic: str
    settledAmountAtomic: str
    refundedAmountAtomic: str
    fees: Fees
    source: None = None
    destination: DestinationView
    escrow: Escrow
    selectedOptionId: str | None
    options: tuple[PaymentOptionEntry, ...]
    receipts: tuple[ReceiptView, ...]
    refunds: tuple[()] = ()
    reconciliation: ReconciliationView
    sessionId: str
    timeline: tuple[TimelineView, ...]
    failure: Failure | None
    reference: str | None
    description: str | None
    metadata: Mapping[str, Any] | None
    apiVersion: str
    paymentUrl: str
    successUrl: str | None
    cancelUrl: str | None
    expiresAt: str
    monitoringExpiresAt: str
    succeededAt: str | None
    cancelledAt: str | None
    createdAt: str
    updatedAt: str


@attrs.frozen(kw_only=True, slots=False)
class CreatedPaymentView(PaymentView):
    """A new Payment, with the secret that is told at creation and its replay only."""

    clientSecret: str = attrs.field(repr=False)


def payment(details: PaymentDetails, links: Links) -> PaymentView:
    """A Payment with its options and receipts."""
    return PaymentView(**_fields(details, links))


def created_payment(details: PaymentDetails, links: Links) -> CreatedPaymentView:
    """A new Payment."""
    assert details.client_secret is not None
    return CreatedPaymentView(clientSecret=details.client_secret, **_fields(details, links))


def _fields(details: PaymentDetails, links: Links) -> dict[str, Any]:
    record = details.payment
    asset = record.asset
    return {
        "id": record.id,
        "paymentId": record.id,
        "intent": record.intent,
        "status": record.status,
        "statusVersion": record.status_version,
        "accountId": record.account_id,
        "externalUserId": record.external_user_id,
        "amount": format_amount(record.amount, asset.decimals),
        "amountAtomic": str(record.amount),
        "assetSymbol": asset.symbol,
        "decimals": asset.decimals,
        "chainId": asset.chain_id,
        "tokenAddress": asset.address,
        "receivedAmountAtomic": str(record.received),
        "remainingAmountAtomic": str(record.remaining.amount_atomic),
        "excessAmountAtomic": str(record.excess),
        "settledAmountAtomic": str(record.settled),
        "refundedAmountAtomic": str(record.refunded),
        "fees": Fees(feeBps=record.fee_bps, feeAmountAtomic=str(record.fee), paidBy="recipient"),
        "destination": _destination(record.destination),
        "escrow": Escrow(chainId=asset.chain_id, address=record.escrow_address),
        "selectedOptionId": record.selected_option_id,
        "options": tuple(_entry(item) for item in details.options),
        "receipts": tuple(option_views.receipt(item, record) for item in details.receipts),
        "reconciliation": _reconciliation(record),
        "sessionId": record.session_id,
        "timeline": tuple(
            TimelineView(status=item.status, at=iso(item.at), reason=item.reason)
            for item in record.timeline
        ),
        "failure": Failure(reason=record.failure) if record.failure else None,
        "reference": record.reference,
        "description": record.description,
        "metadata": record.metadata,
        "apiVersion": record.api_version,
        "paymentUrl": links.url(record),
        "successUrl": record.success_url,
        "cancelUrl": record.cancel_url,
        "expiresAt": iso(record.expires_at),
        "monitoringExpiresAt": iso(record.monitoring_expires_at),
        "succeededAt": iso_or_none(record.succeeded_at),
        "cancelledAt": iso_or_none(record.cancelled_at),
        "createdAt": iso(record.created_at),
        "updatedAt": iso(record.updated_at),
    }


def _destination(destination: Destination) -> DestinationView:
    return DestinationView(
        type=destination.type,
        accountId=destination.account_id,
        externalUserId=destination.external_user_id,
        paymentAddress=destination.payment_address,
        address=destination.address,
    )


def _entry(details: OptionDetails) -> PaymentOptionEntry:
    return PaymentOptionEntry(
        option=option_views.option(details, for_partner=True),
        fundingOperation=option_views.funding_operation(details.operation),
        metadata=details.operation.metadata,
    )


def _reconciliation(record: Payment) -> ReconciliationView:
    reconciliation = record.reconciliation
    return ReconciliationView(
        status=reconciliation.status,
        labels=record.labels,
        resolution=reconciliation.resolution,
        resolvedAt=iso_or_none(reconciliation.resolved_at),
    )
