"""What an account sees with a client token: itself, its Payments, and those that it pays.

Each class names all that is shown; other fields are for the partner's backend only.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Literal, TypeVar

import attrs
import msgspec

from payments_core.accounts.capabilities.record import CapabilityStatus
from payments_core.accounts.operations import AccountDetails
from payments_core.accounts.record import AccountStatus, SubjectType
from payments_core.clock import format_iso
from payments_core.payment_settings.record import PaymentMethod
from payments_core.payments.details import OptionDetails, PaymentDetails
from payments_core.payments.links import Links
from payments_core.payments.record import CreatedBy, DestinationType, Intent
from payments_core_http.v2.accounts import views as account_views
from payments_core_http.v2.accounts.views import KycView, SettlementView, VaultView
from payments_core_http.v2.options import views as option_views
from payments_core_http.v2.options.public_views import PublicPaymentOption
from payments_core_http.v2.options.views import FundedOption, ReceiptView
from payments_core_http.v2.payments import views as payment_views
from payments_core_http.v2.payments.payout_views import PayoutView
from payments_core_http.v2.payments.views import (
    DestinationView,
    Escrow,
    Failure,
    Fees,
    ReconciliationView,
    TimelineView,
)
from payments_core_http.v2.refunds import views as refund_views
from payments_core_http.v2.refunds.views import RefundView
from payments_core_http.v2.statuses import PaymentStatus
from payments_core_http.v2.wallets.views import WalletView
from payments_core_http.wire.classes import frozen_view

V = TypeVar("V")


@frozen_view
class OwnAccountView:
    """The token's account, and what the token may do now."""

    id: str
    accountId: str
    externalUserId: str
    subjectType: SubjectType
    status: AccountStatus
    username: str | None
    paymentAddress: str | None
    vaults: tuple[VaultView, ...]
    wallets: tuple[WalletView, ...]
    settlement: SettlementView | None
    kyc: KycView
    capabilities: Mapping[str, CapabilityStatus]
    permissions: tuple[str, ...]
    createdAt: str
    updatedAt: str


@frozen_view
class PayingVaultView:
    """The vault that a send or a collect comes from, without its owner."""

    type: Literal["vault"] = "vault"
    address: str


@frozen_view
class RecipientPaymentView:
    """A Payment as its recipient sees it: all of it except the partner's metadata, its notes and
    reasons for refunds, and what only the payer may see. Options are the recipient's own, if it
    pays itself; the ids of others' options are null."""

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
    source: PayingVaultView | None
    destination: DestinationView
    escrow: Escrow | None
    releaseTransactionHash: str | None
    allowedMethods: tuple[PaymentMethod, ...]
    selectedOptionId: str | None
    options: tuple[FundedOption | PublicPaymentOption, ...]
    receipts: tuple[ReceiptView, ...]
    refunds: tuple[RefundView, ...]
    payout: PayoutView | None
    reconciliation: ReconciliationView
    sessionId: str | None
    timeline: tuple[TimelineView, ...]
    failure: Failure | None
    reference: str | None
    description: str | None
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
class PayeeView:
    """Who is paid, as far as a payer may see: never an account id, a vault or a wallet."""

    type: DestinationType
    paymentAddress: str | None


@frozen_view
class MomentView:
    """A status and when it began."""

    status: PaymentStatus
    at: str


@frozen_view
class PayerPaymentView:
    """A Payment as seen by a payer who holds its secret: its terms, its timeline, and the payer's
    own part in it."""

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
    destination: PayeeView
    escrow: Escrow | None
    allowedMethods: tuple[PaymentMethod, ...]
    selectedOptionId: str | None
    options: tuple[FundedOption, ...]
    receipts: tuple[ReceiptView, ...]
    timeline: tuple[MomentView, ...]
    reference: str | None
    description: str | None
    apiVersion: str
    paymentUrl: str | None = attrs.field(repr=False)
    successUrl: str | None
    cancelUrl: str | None
    createdBy: CreatedBy | None
    expiresAt: str | None
    """When it can no longer be paid; null for a send."""
    succeededAt: str | None
    cancelledAt: str | None
    createdAt: str
    updatedAt: str


def own_account(details: AccountDetails, permissions: tuple[str, ...]) -> OwnAccountView:
    """An account, to itself."""
    return _select_fields(OwnAccountView, account_views.account(details), permissions=permissions)


def recipient_payment(details: PaymentDetails, links: Links) -> RecipientPaymentView:
    """A Payment, to its recipient, also if it is filed under the account that sends it."""
    record = details.payment
    recipient = record.destination
    own = _options_of(details, recipient.account_id)
    own_ids = {item.option.id for item in own}
    return _select_fields(
        RecipientPaymentView,
        payment_views.payment(details, links),
        accountId=recipient.account_id,
        externalUserId=recipient.external_user_id,
        source=PayingVaultView(address=record.source.address) if record.source else None,
        reconciliation=ReconciliationView(**payment_views.reconciliation_fields(record)),
        timeline=payment_views.timeline(record.timeline),
        selectedOptionId=_id_among(own_ids, record.selected_option_id),
        options=tuple(option_views.funded_option(item, for_partner=True) for item in own),
        receipts=tuple(
            msgspec.structs.replace(receipt, optionId=_id_among(own_ids, receipt.optionId))
            for receipt in (option_views.receipt(item, record) for item in details.receipts)
        ),
        refunds=tuple(
            _select_fields(RefundView, refund_views.refund(refund), reason=None)
            for refund in details.refunds
        ),
    )


def payer_payment(details: PaymentDetails, account_id: str, links: Links) -> PayerPaymentView:
    """A Payment, to the account that pays it: the options and receipts are its own."""
    record = details.payment
    own = _options_of(details, account_id)
    return _select_fields(
        PayerPaymentView,
        payment_views.payment(details, links),
        destination=PayeeView(
            type=record.destination.type, paymentAddress=record.destination.payment_address
        ),
        selectedOptionId=_id_among({item.option.id for item in own}, record.selected_option_id),
        options=tuple(map(option_views.funded_option, own)),
        receipts=tuple(
            option_views.receipt(receipt, record) for item in own for receipt in item.receipts
        ),
        timeline=tuple(
            MomentView(status=item.status, at=format_iso(item.at_ms)) for item in record.timeline
        ),
    )


def _options_of(details: PaymentDetails, account_id: str | None) -> list[OptionDetails]:
    """The options that the account pays with: others have no payer's account."""
    return [
        item
        for item in details.options
        if not item.option.is_public and item.option.payer_account_id == account_id
    ]


def _id_among(known: Collection[str], option_id: str | None) -> str | None:
    """The id of an option, or None if it is another payer's."""
    return option_id if option_id in known else None


def _select_fields(kind: type[V], view: Any, **others: Any) -> V:
    """The fields of a larger view that `kind` names, with `others` replaced."""
    names = [field.name for field in attrs.fields(kind)]  # type: ignore[arg-type]
    return kind(**{name: getattr(view, name) for name in names if name not in others}, **others)
