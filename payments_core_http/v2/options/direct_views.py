"""Direct options as v2 returns them: to the payer's browser, and on the Payment to its partner.

They have the fields of a Vault option (interface "Payment option"), and where to send what.
"""

from __future__ import annotations

from typing import Literal

from payments_core.clock import format_iso
from payments_core.payments.details import OptionDetails
from payments_core.payments.fees import deduct_fee
from payments_core.payments.options.lifecycle import OPTION, is_open
from payments_core.payments.transitions import OPEN
from payments_core_http.v2.options import views as option_views
from payments_core_http.v2.options.views import ChainAmount, ReceiptView, TokenAmount
from payments_core_http.v2.statuses import OptionStatus, SelectionStatus
from payments_core_http.wire.classes import frozen_view


@frozen_view
class TransferExecution:
    """What the payer can do now: send to the Payment's escrow the remaining amount that is not
    already in transit."""

    type: Literal["transfer"] = "transfer"
    chainId: int
    tokenAddress: str
    to: str
    """The escrow's address."""
    amountAtomic: str
    """How much to send, in the smallest unit."""


@frozen_view
class SubmissionView:
    """A transaction that the payer says it has sent; the receipts show whether it did."""

    chainId: int
    transactionHash: str
    submittedAt: str
    """When it was submitted."""


@frozen_view
class DirectOptionView:
    """A direct option. Without a `selectionStatus` it was never selected; without an `execution`
    there is nothing to send."""

    id: str
    providerCode: Literal["direct"] = "direct"
    paymentMethodType: Literal["wallet"] = "wallet"
    paymentMethodId: Literal["direct.transfer"] = "direct.transfer"
    type: Literal["wallet"] = "wallet"
    displayName: Literal["Pay from any wallet"] = "Pay from any wallet"
    status: OptionStatus
    selectionStatus: SelectionStatus | None
    """Whether it is selected or superseded; null until it is selected."""
    requiredAmountAtomic: str
    paidAmountAtomic: str
    remainingAmountAtomic: str
    isTerminal: bool
    confirmationMode: Literal["chain"] = "chain"
    transactionSubmissions: tuple[SubmissionView, ...]
    """The transactions that the payer says it has sent; they prove nothing."""
    sourceAmount: ChainAmount
    destinationAmount: ChainAmount
    payerAmount: TokenAmount
    recipientAmount: TokenAmount
    providerFee: TokenAmount
    payerAddress: str | None
    execution: TransferExecution | None
    expiresAt: str
    """When its terms expire."""
    refreshable: bool
    feeAmountAtomic: Literal["0"] = "0"
    actionExpiresAt: None = None
    quoteExpiresAt: None = None
    orderExpiresAt: None = None
    receipts: tuple[ReceiptView, ...]
    createdAt: str
    updatedAt: str


@frozen_view
class DirectPaymentOption:
    """A direct option under its Payment's id."""

    paymentId: str
    option: DirectOptionView


def payment_option(details: OptionDetails) -> DirectPaymentOption:
    """A direct option, as each of its own calls returns it."""
    return DirectPaymentOption(paymentId=details.payment.id, option=option(details))


def option(details: OptionDetails) -> DirectOptionView:
    """A direct option."""
    record, payment = details.option, details.payment
    asset, required = payment.asset, record.required_atomic
    is_usable = is_open(record)
    chain_amount = ChainAmount(
        amountAtomic=str(required),
        assetSymbol=asset.symbol,
        decimals=asset.decimals,
        chainId=asset.chain_id,
    )
    recipient = deduct_fee(required, payment.fee_bps)
    return DirectOptionView(
        id=record.id,
        status=record.status,
        selectionStatus=record.selection_status,
        requiredAmountAtomic=str(required),
        paidAmountAtomic=str(record.paid_atomic),
        remainingAmountAtomic=str(max(0, required - record.paid_atomic)),
        isTerminal=record.status in OPTION.terminal,
        transactionSubmissions=tuple(
            SubmissionView(
                chainId=item.chain_id,
                transactionHash=item.transaction_hash,
                submittedAt=format_iso(item.submitted_at_ms),
            )
            for item in record.submissions
        ),
        sourceAmount=chain_amount,
        destinationAmount=chain_amount,
        payerAmount=option_views.token_amount(asset, required),
        recipientAmount=option_views.token_amount(asset, recipient),
        providerFee=option_views.token_amount(asset, 0),
        payerAddress=record.payer_address,
        execution=_execution(details) if is_usable else None,
        expiresAt=format_iso(record.expires_at_ms),
        refreshable=is_usable and record.status == "pending" and payment.status in OPEN,
        receipts=tuple(option_views.receipt(item, payment) for item in details.receipts),
        createdAt=format_iso(record.created_at_ms),
        updatedAt=format_iso(record.updated_at_ms),
    )


def _execution(details: OptionDetails) -> TransferExecution | None:
    """What to send: nothing if it is in transit, or if a vault's authorization delivers it.

    A stranger's dust in transit does not reduce what the payer has to send.
    """
    payment = details.payment
    missing = payment.remaining.amount_atomic - details.pending_atomic
    if payment.status not in OPEN or payment.authorized or payment.escrow_address is None:
        return None
    if missing <= 0:
        return None
    return TransferExecution(
        chainId=details.option.chain_id,
        tokenAddress=payment.asset.address,
        to=payment.escrow_address,
        amountAtomic=str(missing),
    )
