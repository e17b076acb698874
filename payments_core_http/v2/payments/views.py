"""Payments as v2 returns them to a partner's backend (contract §6).

What an account sees of them with a client token is in `v2/client/views.py`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

import attrs

from payments_core.banks.rails import Rail
from payments_core.clock import format_iso, format_iso_or_none
from payments_core.money import format_amount
from payments_core.payment_settings.record import PaymentMethod
from payments_core.payments.details import OptionDetails, PaymentDetails
from payments_core.payments.links import Links
from payments_core.payments.record import (
    CreatedBy,
    Destination,
    DestinationType,
    Intent,
    Payment,
    Source,
    TimelineEntry,
)
from payments_core.payments.timeline import with_notes
from payments_core_http.v2.options import public_views as public_option_views
from payments_core_http.v2.options import views as option_views
from payments_core_http.v2.options.public_views import PublicOptionView
from payments_core_http.v2.options.views import FundingOperationView, OptionView, ReceiptView
from payments_core_http.v2.payments import payout_views
from payments_core_http.v2.payments.payout_views import PayoutView
from payments_core_http.v2.refunds import views as refund_views
from payments_core_http.v2.refunds.views import RefundView
from payments_core_http.v2.statuses import PaymentLabel, PaymentResolution, PaymentStatus
from payments_core_http.wire.classes import frozen_view


@frozen_view
class Fees:
    """The fees that the recipient pays, fixed at creation; the release withholds the amount."""

    feeBps: int
    """The fee in hundredths of a percent of what is released."""
    feeAmountAtomic: str
    paidBy: Literal["recipient"]
    """Who pays the fee."""


@frozen_view
class SourceView:
    """The vault that pays, under which mandate, and the version of its policy that allowed it."""

    type: Literal["vault"] = "vault"
    accountId: str
    externalUserId: str
    vaultId: str
    address: str
    """The vault that pays."""
    mandateId: str | None
    """The mandate; null without one."""
    policyVersion: int | None
    """The version of the vault's policy that allowed it; null until then."""


@frozen_view
class DestinationView:
    """Who is paid. For a bank account, the address is the off-ramp address."""

    type: DestinationType
    accountId: str | None
    """The account that is paid; null if no account is paid."""
    externalUserId: str | None
    """Your own id of that account's user; null without an account."""
    paymentAddress: str | None
    """The payment address that was named; null without one."""
    address: str
    """The address that is paid; for a bank account, the off-ramp address."""
    bankAccountId: str | None
    rail: Rail | None
    achReference: str | None
    wireMessage: str | None


@frozen_view
class Escrow:
    """Where the Payment's funds are received."""

    chainId: int
    address: str
    """The address to which payers send."""


@frozen_view
class PaymentOptionEntry:
    """An option of the Payment; a Vault option's funding operation, and the authorization's
    metadata."""

    option: OptionView | PublicOptionView
    fundingOperation: FundingOperationView | None
    metadata: Mapping[str, Any] | None
    """The metadata of the authorization; null without one."""


@frozen_view
class ReconciliationView:
    """The exceptions, and whether they were resolved."""

    status: Literal["none", "open", "resolved"]
    labels: tuple[PaymentLabel, ...]
    resolution: PaymentResolution | None
    resolvedAt: str | None


@frozen_view
class NotedReconciliationView(ReconciliationView):
    """The exceptions, whether they were resolved, and the note of the last decision."""

    note: str | None


@frozen_view
class TimelineView:
    """A status and when it began."""

    status: PaymentStatus
    at: str
    reason: str | None
    """Why this state occurred again, or a decision's note; null without either."""


@frozen_view
class Failure:
    """Why the execution failed."""

    reason: str
    """Why it failed."""


@frozen_view
class PaymentView:
    """A Payment with all its fields. A send has no escrow and no time limit; only a receive Payment
    has a session and a checkout link."""

    id: str
    paymentId: str
    intent: Intent
    status: PaymentStatus
    """Its state, as listed in the table of state machines."""
    statusVersion: int
    accountId: str | None
    """The recipient's account; null if a wallet or a bank account is paid."""
    externalUserId: str | None
    """Your own id of the recipient's user; null if no account is paid."""
    amount: str
    """The Payment's amount, as a decimal string in whole units of the asset."""
    amountAtomic: str
    """The Payment's amount, in the asset's smallest unit."""
    assetSymbol: str
    decimals: int
    chainId: int
    tokenAddress: str
    receivedAmountAtomic: str
    remainingAmountAtomic: str
    excessAmountAtomic: str
    settledAmountAtomic: str
    refundedAmountAtomic: str
    returnedAmountAtomic: str
    fees: Fees
    source: SourceView | None
    destination: DestinationView
    escrow: Escrow | None
    releaseTransactionHash: str | None
    allowedMethods: tuple[PaymentMethod, ...]
    selectedOptionId: str | None
    options: tuple[PaymentOptionEntry, ...]
    receipts: tuple[ReceiptView, ...]
    refunds: tuple[RefundView, ...]
    payout: PayoutView | None
    reconciliation: NotedReconciliationView
    sessionId: str | None
    timeline: tuple[TimelineView, ...]
    failure: Failure | None
    reference: str | None
    description: str | None
    metadata: Mapping[str, Any] | None
    apiVersion: str
    paymentUrl: str | None = attrs.field(repr=False)
    successUrl: str | None
    cancelUrl: str | None
    createdBy: CreatedBy | None
    expiresAt: str | None
    """When it can no longer be paid; null for a send."""
    monitoringExpiresAt: str | None
    succeededAt: str | None
    cancelledAt: str | None
    createdAt: str
    updatedAt: str


@frozen_view
class CreatedPaymentView(PaymentView):
    """A new receive Payment, with the secret that is shown only at creation and its replay."""

    clientSecret: str = attrs.field(repr=False)


def payment(details: PaymentDetails, links: Links) -> PaymentView:
    """A Payment with its options, receipts and refunds."""
    return PaymentView(**_detail_fields(details, links))


def created_payment(details: PaymentDetails, links: Links) -> PaymentView:
    """A new Payment; only a receive Payment has a secret."""
    if details.client_secret is None:
        return payment(details, links)
    return CreatedPaymentView(clientSecret=details.client_secret, **_detail_fields(details, links))


def term_fields(record: Payment) -> dict[str, Any]:
    """The fields for both the partner and an unknown payer; a view's class names what it shows.

    A field that is added here is refused by every view that does not name it.
    """
    asset = record.asset
    awaits = record.intent != "send"
    return {
        "id": record.id,
        "paymentId": record.id,
        "intent": record.intent,
        "status": record.status,
        "statusVersion": record.status_version,
        "amount": format_amount(record.amount_atomic, asset.decimals),
        "amountAtomic": str(record.amount_atomic),
        "assetSymbol": asset.symbol,
        "decimals": asset.decimals,
        "chainId": asset.chain_id,
        "tokenAddress": asset.address,
        "receivedAmountAtomic": str(record.received_atomic),
        "remainingAmountAtomic": str(record.remaining.amount_atomic if awaits else 0),
        "excessAmountAtomic": str(record.excess_atomic),
        "refundedAmountAtomic": str(record.refunded_atomic),
        "escrow": _escrow(record),
        "allowedMethods": record.allowed_methods if record.intent == "receive" else (),
        "reference": record.reference,
        "description": record.description,
        "apiVersion": record.api_version,
        "successUrl": record.success_url,
        "cancelUrl": record.cancel_url,
        "createdBy": record.created_by,
        "expiresAt": format_iso(record.expires_at_ms) if awaits else None,
        "succeededAt": format_iso_or_none(record.succeeded_at_ms),
        "cancelledAt": format_iso_or_none(record.cancelled_at_ms),
        "createdAt": format_iso(record.created_at_ms),
        "updatedAt": format_iso(record.updated_at_ms),
    }


def reconciliation_fields(record: Payment) -> dict[str, Any]:
    """The fields of the reconciliation for both the partner and the recipient."""
    return {
        "status": record.reconciliation.status,
        "labels": record.labels,
        "resolution": record.reconciliation.resolution,
        "resolvedAt": format_iso_or_none(record.reconciliation.resolved_at_ms),
    }


def timeline(entries: Iterable[TimelineEntry]) -> tuple[TimelineView, ...]:
    """The entries of a timeline."""
    return tuple(
        TimelineView(status=item.status, at=format_iso(item.at_ms), reason=item.reason)
        for item in entries
    )


def _detail_fields(details: PaymentDetails, links: Links) -> dict[str, Any]:
    record = details.payment
    return {
        **term_fields(record),
        "accountId": record.account_id,
        "externalUserId": record.external_user_id,
        "settledAmountAtomic": str(record.settled_atomic),
        "returnedAmountAtomic": str(record.returned_atomic),
        "fees": Fees(
            feeBps=record.fee_bps, feeAmountAtomic=str(record.fee_atomic), paidBy="recipient"
        ),
        "source": _source(record.source, details) if record.source else None,
        "destination": _destination(record.destination),
        "releaseTransactionHash": record.release_hash,
        "selectedOptionId": record.selected_option_id,
        "options": tuple(map(_entry, details.options)),
        "receipts": tuple(option_views.receipt(item, record) for item in details.receipts),
        "refunds": tuple(map(refund_views.refund, details.refunds)),
        "payout": None if record.payout is None else payout_views.payout(record.payout),
        "reconciliation": NotedReconciliationView(
            note=record.reconciliation_note, **reconciliation_fields(record)
        ),
        "sessionId": record.session_id if record.intent == "receive" else None,
        "timeline": timeline(with_notes(record)),
        "failure": Failure(reason=record.failure) if record.failure else None,
        "metadata": record.metadata,
        "paymentUrl": details.payment_url or links.build_url(record),
        "monitoringExpiresAt": (
            format_iso(record.monitoring_expires_at_ms) if record.intent != "send" else None
        ),
    }


def _escrow(record: Payment) -> Escrow | None:
    """Where a Payment's funds are received."""
    if record.escrow_address is None:
        return None
    return Escrow(chainId=record.chain_id, address=record.escrow_address)


def _source(source: Source, details: PaymentDetails) -> SourceView:
    """The vault that pays; the authorization of a collect is that of its one option."""
    operations = (item.operation for item in details.options if item.operation is not None)
    passed = [source.policy_version, *(operation.policy_version for operation in operations)]
    return SourceView(
        accountId=source.account_id,
        externalUserId=source.external_user_id,
        vaultId=source.vault_id,
        address=source.address,
        mandateId=source.mandate_id,
        policyVersion=next((version for version in passed if version is not None), None),
    )


def _destination(destination: Destination) -> DestinationView:
    return DestinationView(
        type=destination.type,
        accountId=destination.account_id,
        externalUserId=destination.external_user_id,
        paymentAddress=destination.payment_address,
        address=destination.address,
        bankAccountId=destination.bank_account_id,
        rail=destination.rail,
        achReference=destination.statement_text if destination.rail == "ach" else None,
        wireMessage=destination.statement_text if destination.rail == "wire" else None,
    )


def _entry(details: OptionDetails) -> PaymentOptionEntry:
    if details.operation is None:
        option = public_option_views.option(details)
        return PaymentOptionEntry(option=option, fundingOperation=None, metadata=None)
    return PaymentOptionEntry(
        option=option_views.option(details, for_partner=True),
        fundingOperation=option_views.funding_operation(details.operation),
        metadata=details.operation.metadata,
    )
