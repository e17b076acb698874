"""Options, funding operations and receipts as v2 returns them.

Option and funding operation have exactly the fields of interface.md.
"""

from __future__ import annotations

from typing import ClassVar, Literal

import attrs
import msgspec
from msgspec import UNSET, UnsetType

from payments_core.chains.judge import Reason
from payments_core.clock import format_iso, format_iso_or_none
from payments_core.misdirected.record import SentBack
from payments_core.money import format_amount
from payments_core.networks import Asset
from payments_core.payments.details import OptionDetails
from payments_core.payments.fees import deduct_fee
from payments_core.payments.funding.record import FundingOperation
from payments_core.payments.options.lifecycle import OPTION
from payments_core.payments.options.record import PaymentOption as StoredOption
from payments_core.payments.receipts.record import Receipt
from payments_core.payments.record import Payment
from payments_core.payments.transitions import OPEN
from payments_core_http.v2.statuses import (
    FundingStatus,
    OptionStatus,
    ReceiptStatus,
    SelectionStatus,
    SendingBackStatus,
)
from payments_core_http.wire.classes import frozen_view


@frozen_view
class ChainAmount:
    """An amount of an asset on a chain."""

    amountAtomic: str
    assetSymbol: str
    decimals: int
    chainId: int


@frozen_view
class TokenAmount:
    """An amount with its decimal text and its token."""

    amountAtomic: str
    amountDecimal: str
    """The amount, as a decimal string in whole units of the asset."""
    assetSymbol: str
    decimals: int
    chainId: int
    tokenAddress: str


@frozen_view
class VaultExecution:
    """What the payer can do now: authorize this transfer, once, with this action."""

    closed: ClassVar[bool] = True

    type: Literal["vault_authorization"] = "vault_authorization"
    actionId: str = attrs.field(repr=False)
    expiresAt: str
    """When the action expires."""


@frozen_view
class SendingBackFailure:
    """Why the funds are not back."""

    reason: str
    """Why the funds are not back."""


@frozen_view
class SentBackView:
    """The newest transfer that sends misdirected funds back, on their own chain."""

    destination: str
    """The address that gets them."""
    status: SendingBackStatus
    inReview: bool
    """Whether screening holds it: it is not sent before its destination is clear."""
    transactionHash: str | None
    failure: SendingBackFailure | None
    """Why it failed; null unless it did."""


class ReceiptView(msgspec.Struct, kw_only=True, frozen=True, rename={"from_": "from"}):
    """A transfer to the escrow and its result (contract §6 "Receipts").

    `optionId` is null for a transfer that belongs to no option. `sentBack` is there if the return
    of misdirected funds was requested.
    """

    id: str
    paymentId: str
    optionId: str | None
    chainId: int
    transactionHash: str
    logIndex: int
    """The index of the transfer's log in its block."""
    tokenAddress: str
    from_: str
    to: str
    amountAtomic: str
    blockNumber: int
    """The number of the block that the transfer is in."""
    blockHash: str
    """The hash of the block that the transfer is in."""
    status: ReceiptStatus
    rejectionReason: Reason | None
    observedAt: str
    """When it was first seen."""
    verifiedAt: str | None
    sentBack: SentBackView | UnsetType = UNSET


@frozen_view
class OptionView:
    """A Vault option (interface "Payment option")."""

    closed: ClassVar[bool] = True

    id: str
    providerCode: Literal["vault"] = "vault"
    paymentMethodType: Literal["account_balance"] = "account_balance"
    paymentMethodId: Literal["vault.service"] = "vault.service"
    type: Literal["account_balance"] = "account_balance"
    displayName: Literal["Pay with Service Vault"] = "Pay with Service Vault"
    status: OptionStatus
    selectionStatus: SelectionStatus
    requiredAmountAtomic: str
    paidAmountAtomic: str
    remainingAmountAtomic: str
    isTerminal: bool
    confirmationMode: Literal["provider_webhook"] = "provider_webhook"
    transactionSubmissions: tuple[str, ...] = ()
    """Always empty: the service itself sends the transfer."""
    sourceAmount: ChainAmount
    destinationAmount: ChainAmount
    payerAmount: TokenAmount
    recipientAmount: TokenAmount
    providerFee: TokenAmount
    execution: VaultExecution | None
    expiresAt: str | None
    refreshable: bool
    feeAmountAtomic: str
    actionExpiresAt: str | None
    quoteExpiresAt: str | None
    orderExpiresAt: str | None = None
    receipts: tuple[ReceiptView, ...]


@frozen_view
class FundingOperationView:
    """A funding operation (interface "Vault funding operation")."""

    closed: ClassVar[bool] = True

    id: str
    status: FundingStatus
    statusVersion: int
    """Rises by one at each change; 2 once it is authorized."""
    commercialFeeMode: Literal["parent_payment"] = "parent_payment"
    """Where fees are charged: with the Payment, not with the transfer."""
    transactionHash: str | None
    authorizedAt: str | None
    """When the transfer was authorized; null until then."""
    broadcastAt: str | None
    """When the transfer was sent to the chain; null until then."""
    confirmedAt: str | None
    """When the transfer was final on the chain; null until then."""
    expiresAt: str | None
    """When the one-time action expires; null if it does not expire."""


@frozen_view
class PaymentOption:
    """An option under its Payment's id."""

    paymentId: str
    option: OptionView


@frozen_view
class FundedOption:
    """An option with its funding operation."""

    paymentId: str
    option: OptionView
    fundingOperation: FundingOperationView


def payment_option(details: OptionDetails) -> PaymentOption:
    """The response of a creation or a refresh."""
    return PaymentOption(paymentId=details.payment.id, option=option(details))


def funded_option(details: OptionDetails, *, for_partner: bool = False) -> FundedOption:
    """The response of a reading or an authorization."""
    assert details.operation is not None
    return FundedOption(
        paymentId=details.payment.id,
        option=option(details, for_partner=for_partner),
        fundingOperation=funding_operation(details.operation),
    )


def option(details: OptionDetails, *, for_partner: bool = False) -> OptionView:
    """A Vault option; a partner's backend is not shown the payer's one-time action."""
    record, payment = details.option, details.payment
    assert record.selection_status is not None
    asset = payment.asset
    required, paid = record.required_atomic, record.paid_atomic
    recipient = deduct_fee(required, payment.fee_bps)
    is_terminal = record.status in OPTION.terminal
    is_open = record.selection_status == "selected" and payment.status in OPEN
    chain_amount = ChainAmount(
        amountAtomic=str(required),
        assetSymbol=asset.symbol,
        decimals=asset.decimals,
        chainId=asset.chain_id,
    )
    return OptionView(
        id=record.id,
        status=record.status,
        selectionStatus=record.selection_status,
        requiredAmountAtomic=str(required),
        paidAmountAtomic=str(paid),
        remainingAmountAtomic=str(max(0, required - paid)),
        isTerminal=is_terminal,
        sourceAmount=chain_amount,
        destinationAmount=chain_amount,
        payerAmount=token_amount(asset, required),
        recipientAmount=token_amount(asset, recipient),
        providerFee=token_amount(asset, record.fee_atomic),
        execution=_execution(record) if is_open and not for_partner else None,
        expiresAt=format_iso(record.expires_at_ms),
        refreshable=is_open and record.status == "pending",
        feeAmountAtomic=str(record.fee_atomic),
        actionExpiresAt=format_iso_or_none(record.action_expires_at_ms),
        quoteExpiresAt=format_iso_or_none(record.action_expires_at_ms),
        receipts=tuple(receipt(item, payment) for item in details.receipts),
    )


def funding_operation(record: FundingOperation) -> FundingOperationView:
    """A funding operation."""
    return FundingOperationView(
        id=record.id,
        status=record.status,
        statusVersion=record.status_version,
        transactionHash=record.transaction_hash,
        authorizedAt=format_iso_or_none(record.authorized_at_ms),
        broadcastAt=format_iso_or_none(record.broadcast_at_ms),
        confirmedAt=format_iso_or_none(record.confirmed_at_ms),
        expiresAt=format_iso_or_none(record.expires_at_ms),
    )


def receipt(record: Receipt, payment: Payment) -> ReceiptView:
    """A receipt."""
    return ReceiptView(
        id=record.id,
        paymentId=payment.id,
        optionId=record.option_id,
        chainId=record.chain_id,
        transactionHash=record.transaction_hash,
        logIndex=record.log_index,
        tokenAddress=record.token_address,
        from_=record.sender,
        to=record.recipient,
        amountAtomic=str(record.amount_atomic),
        blockNumber=record.block_number,
        blockHash=record.block_hash,
        status=record.status,
        rejectionReason=record.rejection_reason,
        observedAt=format_iso(record.observed_at_ms),
        verifiedAt=format_iso_or_none(record.verified_at_ms),
        sentBack=UNSET if record.sent_back is None else sent_back(record.sent_back),
    )


def sent_back(record: SentBack) -> SentBackView:
    """The way back of misdirected funds."""
    return SentBackView(
        destination=record.destination,
        status=record.status,
        inReview=record.in_review,
        transactionHash=record.transaction_hash,
        failure=SendingBackFailure(reason=record.failure) if record.failure else None,
    )


def _execution(record: StoredOption) -> VaultExecution | None:
    if record.action_id is None or record.action_expires_at_ms is None:
        return None
    return VaultExecution(
        actionId=record.action_id, expiresAt=format_iso(record.action_expires_at_ms)
    )


def token_amount(asset: Asset, amount_atomic: int) -> TokenAmount:
    """An amount with its decimal text and its token."""
    return TokenAmount(
        amountAtomic=str(amount_atomic),
        amountDecimal=format_amount(amount_atomic, asset.decimals),
        assetSymbol=asset.symbol,
        decimals=asset.decimals,
        chainId=asset.chain_id,
        tokenAddress=asset.address,
    )
