"""Payments as seen by a payer's browser that holds the Payment's client secret and nothing else
(contract §6 "Public checkout").

Each class names all that is shown. Only the partner sees metadata, account ids, vaults and wallets.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import attrs

from payments_core.clock import format_iso
from payments_core.errors import ConfigurationError
from payments_core.payment_settings.record import PaymentMethod
from payments_core.payments.checkout.checkout import CheckoutState, ExchangedLink
from payments_core.payments.checkout.options import CheckoutMethod
from payments_core.payments.details import PaymentDetails
from payments_core.payments.options.methods import METHODS
from payments_core.payments.options.record import PaymentOption
from payments_core.payments.receipts.progress import ReceiptProgress
from payments_core.payments.record import CreatedBy, Intent, Payment
from payments_core_http.v2.options import public_views as public_option_views
from payments_core_http.v2.options.public_views import PublicOptionView
from payments_core_http.v2.payments import views as payment_views
from payments_core_http.v2.payments.views import Escrow
from payments_core_http.v2.statuses import OptionStatus, PaymentStatus, SelectionStatus
from payments_core_http.wire.classes import frozen_view


@frozen_view
class PublicMomentView:
    """A status and when it began."""

    status: PaymentStatus
    at: str


@frozen_view
class PublicPaymentView:
    """A Payment's terms, its options without an account, and its timeline."""

    id: str
    paymentId: str
    intent: Intent
    status: PaymentStatus
    """Its state, as listed in the table of state machines."""
    statusVersion: int
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
    refundedAmountAtomic: str
    escrow: Escrow | None
    allowedMethods: tuple[PaymentMethod, ...]
    selectedOptionId: str | None
    options: tuple[PublicOptionView, ...]
    timeline: tuple[PublicMomentView, ...]
    reference: str | None
    description: str | None
    apiVersion: str
    successUrl: str | None
    cancelUrl: str | None
    createdBy: CreatedBy | None
    paymentUrl: str | None = attrs.field(repr=False)
    """The link to the hosted checkout page; null if the service has no public URL."""
    expiresAt: str
    """When it can no longer be paid; null for a send."""
    succeededAt: str | None
    cancelledAt: str | None
    createdAt: str
    updatedAt: str


@frozen_view
class CreatedPublicPaymentView(PublicPaymentView):
    """A new Payment, with the secret and the link that are shown only at its creation."""

    clientSecret: str = attrs.field(repr=False)
    paymentUrl: str = attrs.field(repr=False)
    """The link to the hosted checkout page."""


@frozen_view
class OptionStateView:
    """The state of an option."""

    id: str
    status: OptionStatus
    selectionStatus: SelectionStatus | None
    paidAmountAtomic: str


@frozen_view
class ProgressView:
    """The newest transfer that does not count yet."""

    receiptId: str
    """The transfer."""
    confirmations: int
    """How many blocks are on top of its block."""
    required: int | None
    """How many blocks must be on top; null if the chain's own finality decides."""
    estimatedAt: str | None
    """When it counts, about; null if nobody knows."""


@frozen_view
class CheckoutStateView:
    """The state of a Payment. The response changes only when the state does."""

    paymentId: str
    status: PaymentStatus
    statusVersion: int
    amountAtomic: str
    receivedAmountAtomic: str
    remainingAmountAtomic: str
    excessAmountAtomic: str
    refundedAmountAtomic: str
    selectedOptionId: str | None
    options: tuple[OptionStateView, ...]
    progress: ProgressView | None
    """The transfer that the Payment waits for; null without one."""
    expiresAt: str


@frozen_view
class MethodAssetView:
    """A token that a method accepts."""

    chainId: int
    assetSymbol: str
    tokenAddress: str
    decimals: int


@frozen_view
class MethodView:
    """A way to pay. If it is not `available`, the Payment allows it, but it is not active here, or
    its provider does not answer now."""

    providerCode: PaymentMethod
    displayName: str
    available: bool
    """Whether it can be used now."""
    unavailableReason: Literal["capability_not_active"] | None
    """Why it is not available; null if it is available."""
    assets: tuple[MethodAssetView, ...]
    """The assets that are accepted; none for `hosted_onramp`, which is paid in a currency."""


@frozen_view
class MethodsView:
    """The ways to pay a Payment without an account."""

    paymentId: str
    methods: tuple[MethodView, ...]
    """The ways to pay."""


@frozen_view
class ExchangedLinkView:
    """The Payment of a link's code; the code works until `expiresAt`."""

    paymentId: str
    clientSecret: str = attrs.field(repr=False)
    """The credential for the Payment."""
    expiresAt: str
    """When the link expires."""


def payment(details: PaymentDetails, payment_url: str | None) -> PublicPaymentView:
    """A Payment, to the holder of its secret."""
    return PublicPaymentView(paymentUrl=payment_url, **_payment_fields(details))


def created_payment(details: PaymentDetails) -> CreatedPublicPaymentView:
    """A new Payment, to the browser that asked for it."""
    assert details.client_secret is not None
    if details.payment_url is None:
        raise ConfigurationError("public_url")
    return CreatedPublicPaymentView(
        clientSecret=details.client_secret,
        paymentUrl=details.payment_url,
        **_payment_fields(details),
    )


def state(known: CheckoutState) -> CheckoutStateView:
    """The state of a Payment and its direct options."""
    record = known.payment
    return CheckoutStateView(
        paymentId=record.id,
        status=record.status,
        statusVersion=record.status_version,
        amountAtomic=str(record.amount_atomic),
        receivedAmountAtomic=str(record.received_atomic),
        remainingAmountAtomic=str(record.remaining.amount_atomic),
        excessAmountAtomic=str(record.excess_atomic),
        refundedAmountAtomic=str(record.refunded_atomic),
        selectedOptionId=_selected_option_id(record, known.options),
        options=tuple(map(_option_state, known.options)),
        progress=None if known.progress is None else _progress(known.progress),
        expiresAt=format_iso(record.expires_at_ms),
    )


def methods(payment_id: str, offered: Sequence[CheckoutMethod]) -> MethodsView:
    """The ways to pay a Payment."""
    return MethodsView(paymentId=payment_id, methods=tuple(map(_method, offered)))


def exchanged_link(exchanged: ExchangedLink) -> ExchangedLinkView:
    """What a link's code was exchanged for."""
    return ExchangedLinkView(
        paymentId=exchanged.payment_id,
        clientSecret=exchanged.client_secret,
        expiresAt=format_iso(exchanged.expires_at_ms),
    )


def _progress(known: ReceiptProgress) -> ProgressView:
    at_ms = known.estimated_at_ms
    return ProgressView(
        receiptId=known.receipt_id,
        confirmations=known.confirmations,
        required=known.required,
        estimatedAt=None if at_ms is None else format_iso(at_ms),
    )


def _option_state(record: PaymentOption) -> OptionStateView:
    return OptionStateView(
        id=record.id,
        status=record.status,
        selectionStatus=record.selection_status,
        paidAmountAtomic=str(record.paid_atomic),
    )


def _method(offered: CheckoutMethod) -> MethodView:
    return MethodView(
        providerCode=offered.method,
        displayName=METHODS[offered.method].display_name,
        available=offered.available,
        unavailableReason=None if offered.available else "capability_not_active",
        assets=tuple(
            MethodAssetView(
                chainId=asset.chain_id,
                assetSymbol=asset.symbol,
                tokenAddress=asset.address,
                decimals=asset.decimals,
            )
            for asset in offered.assets
        ),
    )


def _selected_option_id(record: Payment, public: Sequence[PaymentOption]) -> str | None:
    """The selected option, unless it is a Vault option, which only its payer may see."""
    selected = record.selected_option_id
    return selected if any(option.id == selected for option in public) else None


def _payment_fields(details: PaymentDetails) -> dict[str, Any]:
    record = details.payment
    public = [item for item in details.options if item.option.is_public]
    return {
        **payment_views.term_fields(record),
        "selectedOptionId": _selected_option_id(record, [item.option for item in public]),
        "options": tuple(map(public_option_views.option, public)),
        "timeline": tuple(
            PublicMomentView(status=item.status, at=format_iso(item.at_ms))
            for item in record.timeline
        ),
    }
