"""Options without an account as v2 returns them: to the payer's browser, and to the partner.

They have the fields of a Vault option (interface "Payment option"), and what to do: where to send
what, or where to go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import attrs

from payments_core.clock import format_iso
from payments_core.networks import Asset
from payments_core.payments.details import OptionDetails
from payments_core.payments.fees import deduct_fee
from payments_core.payments.offers.lifecycle import MAX_OFFERS
from payments_core.payments.options.lifecycle import OPTION, is_open
from payments_core.payments.options.methods import METHODS
from payments_core.payments.options.offer import Offer, OfferStatus, OfferTerms
from payments_core.payments.options.record import Submission
from payments_core.payments.transitions import OPEN
from payments_core_http.v2.options import views as option_views
from payments_core_http.v2.options.views import ChainAmount, ReceiptView, TokenAmount
from payments_core_http.v2.statuses import OptionStatus, SelectionStatus
from payments_core_http.wire.classes import frozen_view


@frozen_view
class TransferExecution:
    """What the payer can do now: send this amount. It goes to the Payment's escrow, which takes
    what remains and is not in transit, or to a router's address, which takes the exact amount until
    `quoteExpiresAt`."""

    type: Literal["transfer"] = "transfer"
    chainId: int
    tokenAddress: str
    to: str
    """The escrow's or the router's address."""
    amountAtomic: str
    """How much to send, in the smallest unit."""


@frozen_view
class RedirectExecution:
    """What the payer can do now: open this page of the provider, and pay the price there until
    `quoteExpiresAt`."""

    type: Literal["redirect"] = "redirect"
    url: str = attrs.field(repr=False)
    """The provider's page for this payer only."""
    price: str
    """What the payer pays in all, as a decimal string."""
    currency: str
    """The currency of the price (ISO 4217)."""


@frozen_view
class OfferView:
    """What the provider of an option says about its newest offer. The receipts show whether
    anything arrived."""

    status: OfferStatus
    """What the provider says: it may still say that it was paid after it has delivered."""
    paymentTransactionHash: str | None
    """The payer's transfer to a router; null until the router has seen it."""
    transactionHash: str | None
    """The transfer to the escrow, or back to the payer's `refundAddress`; null until there is
    one."""
    amountAtomic: str | None
    """The amount in the newest transfer, in the smallest unit of its asset."""


@frozen_view
class SubmissionView:
    """A transaction that the payer says it has sent; the receipts show whether it did."""

    chainId: int
    transactionHash: str
    submittedAt: str
    """When it was submitted."""


@frozen_view
class PublicOptionView:
    """An option without an account. Without a `selectionStatus` it was never selected; without an
    `execution` there is nothing to do."""

    id: str
    providerCode: Literal["direct", "routing", "hosted_onramp"]
    paymentMethodType: Literal["wallet", "fiat"]
    paymentMethodId: Literal["direct.transfer", "routing.transfer", "hosted_onramp.redirect"]
    type: Literal["wallet", "fiat"]
    displayName: Literal["Pay from any wallet", "Pay with any token", "Pay by card or bank"]
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
    providerFee: TokenAmount | None
    """What the method's provider charges; null if it is in what the payer pays."""
    payerAddress: str | None
    refundAddress: str | None
    """Where a router returns what it cannot deliver; null for other methods."""
    execution: TransferExecution | RedirectExecution | None
    offer: OfferView | None
    """What the provider says; null without one."""
    expiresAt: str
    """When its terms expire."""
    refreshable: bool
    feeAmountAtomic: Literal["0"] = "0"
    actionExpiresAt: None = None
    quoteExpiresAt: str | None
    """When the provider's terms expire: do not pay later, but refresh. Null without a provider."""
    orderExpiresAt: str | None
    """When an on-ramp's order expires; null without one."""
    receipts: tuple[ReceiptView, ...]
    createdAt: str
    updatedAt: str


@frozen_view
class PublicPaymentOption:
    """An option without an account, under its Payment's id."""

    paymentId: str
    option: PublicOptionView


def payment_option(details: OptionDetails) -> PublicPaymentOption:
    """An option without an account, as each of its own calls returns it."""
    return PublicPaymentOption(paymentId=details.payment.id, option=option(details))


def option(details: OptionDetails) -> PublicOptionView:
    """An option without an account."""
    record, payment, terms = details.option, details.payment, _terms_of(details)
    required = record.required_atomic
    is_usable = is_open(record)
    method, kind = METHODS[record.method], _KINDS[METHODS[record.method].execution]
    paid_with, pays = _payer_amount(details)
    expires_at = None if terms is None else format_iso(terms.expires_at_ms)
    return PublicOptionView(
        id=record.id,
        providerCode=record.method,  # type: ignore[arg-type]  # a vault has its own view
        paymentMethodType=kind,
        paymentMethodId=f"{record.method}.{method.execution}",  # type: ignore[arg-type]
        type=kind,
        displayName=method.display_name,  # type: ignore[arg-type]
        status=record.status,
        selectionStatus=record.selection_status,
        requiredAmountAtomic=str(required),
        paidAmountAtomic=str(record.paid_atomic),
        remainingAmountAtomic=str(max(0, required - record.paid_atomic)),
        isTerminal=record.status in OPTION.terminal,
        transactionSubmissions=tuple(map(_submission, record.submissions)),
        sourceAmount=_chain_amount(paid_with, pays),
        destinationAmount=_chain_amount(payment.asset, required),
        payerAmount=option_views.token_amount(paid_with, pays),
        recipientAmount=option_views.token_amount(
            payment.asset, deduct_fee(required, payment.fee_bps)
        ),
        providerFee=None if record.has_provider else option_views.token_amount(payment.asset, 0),
        payerAddress=record.payer_address,
        refundAddress=record.refund_address,
        execution=_execution(details) if is_usable else None,
        offer=_offer(details.offer),
        expiresAt=format_iso(record.expires_at_ms),
        refreshable=is_usable
        and record.status == "pending"
        and payment.status in OPEN
        and record.offer_count < MAX_OFFERS,
        quoteExpiresAt=expires_at,
        orderExpiresAt=expires_at if kind == "fiat" else None,
        receipts=tuple(option_views.receipt(item, payment) for item in details.receipts),
        createdAt=format_iso(record.created_at_ms),
        updatedAt=format_iso(record.updated_at_ms),
    )


_KINDS: Mapping[str, Literal["wallet", "fiat"]] = {"transfer": "wallet", "redirect": "fiat"}
"""What a payer pays with, by the method's execution."""


def _terms_of(details: OptionDetails) -> OfferTerms | None:
    return None if details.offer is None else details.offer.terms


def _payer_amount(details: OptionDetails) -> tuple[Asset, int]:
    """The asset that leaves the payer's wallet, and how much; 0 until a router has said it.

    A buyer at an on-ramp has none, so it is what the on-ramp sends.
    """
    record, terms = details.option, _terms_of(details)
    if record.source is None:
        return details.payment.asset, record.required_atomic
    return record.source, (terms.amount_atomic or 0) if terms is not None else 0


def _chain_amount(asset: Asset, amount_atomic: int) -> ChainAmount:
    return ChainAmount(
        amountAtomic=str(amount_atomic),
        assetSymbol=asset.symbol,
        decimals=asset.decimals,
        chainId=asset.chain_id,
    )


def _submission(item: Submission) -> SubmissionView:
    return SubmissionView(
        chainId=item.chain_id,
        transactionHash=item.transaction_hash,
        submittedAt=format_iso(item.submitted_at_ms),
    )


def _offer(record: Offer | None) -> OfferView | None:
    if record is None:
        return None
    amount = record.progress_atomic
    return OfferView(
        status=record.status,
        paymentTransactionHash=record.payment_hash,
        transactionHash=record.transaction_hash,
        amountAtomic=None if amount is None else str(amount),
    )


def _execution(details: OptionDetails) -> TransferExecution | RedirectExecution | None:
    """What to do: nothing if funds are in transit, or if a vault's authorization delivers them.

    A stranger's dust in transit does not reduce what the payer has to send.
    """
    payment, record = details.payment, details.option
    if payment.status not in OPEN or payment.authorized or payment.escrow_address is None:
        return None
    if record.has_provider:
        return _offered_execution(details)
    missing = payment.remaining.amount_atomic - details.pending_atomic
    if missing <= 0:
        return None
    return TransferExecution(
        chainId=record.chain_id,
        tokenAddress=payment.asset.address,
        to=payment.escrow_address,
        amountAtomic=str(missing),
    )


def _offered_execution(details: OptionDetails) -> TransferExecution | RedirectExecution | None:
    """What the provider offers, until it has been paid."""
    record, offer, terms = details.option, details.offer, _terms_of(details)
    if offer is None or terms is None or offer.status != "waiting" or record.status != "pending":
        return None
    if terms.url is not None:
        return RedirectExecution(
            url=terms.url, price=str(terms.price), currency=str(terms.currency)
        )
    assert record.source is not None
    assert terms.address is not None
    return TransferExecution(
        chainId=record.source.chain_id,
        tokenAddress=record.source.address,
        to=terms.address,
        amountAtomic=str(terms.amount_atomic),
    )
