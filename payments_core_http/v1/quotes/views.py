"""Quotes as v1 returns them (interface "v1 (legacy) conventions").

Amounts are texts: digit strings in the smallest unit, and decimals. Values in US dollars have
fixed places, and are null for a token without a price.
"""

from __future__ import annotations

from payments_core.clock import SECOND, format_iso
from payments_core.money import format_amount
from payments_core.quotes.record import Quote
from payments_core_http.v1.envelope import Success
from payments_core_http.wire.classes import frozen_view


@frozen_view
class QuoteDataView:
    """Where a quote is paid."""

    depositAddress: str
    quoteId: str


@frozen_view
class TokenInView:
    """What the payer sends: exactly `inputTokenAmountRaw` of the token."""

    address: str
    """The address of the token's contract."""
    inputTokenAmountRaw: str
    """What the payer sends, in the token's smallest unit."""
    inputTokenAmountRawFormatted: str
    """The same amount as `inputTokenAmountRaw`, as a decimal string."""
    inputValueInUSD: str | None
    """The value of the input amount in US dollars; null without a price."""


@frozen_view
class TokenOutView:
    """What the recipient is expected to get, and the minimum in `minimumOutput`, as raw amounts."""

    address: str
    """The address of the token's contract."""
    outputTokenAmountRaw: str
    """What the recipient is expected to get, in the token's smallest unit."""
    outputTokenAmountRawFormatted: str
    """The same amount as `outputTokenAmountRaw`, as a decimal string."""
    outputValueInUSD: str | None
    """The value of the output amount in US dollars; null without a price."""
    minimumOutput: str
    """The minimum that the recipient gets, in the token's smallest unit."""


@frozen_view
class QuotePayloadView:
    """What a quote offers. `estimatedTime` is in seconds, `quoteExpiry` in Unix seconds.

    `exchangeRate` is how many output tokens one input token buys, before the fee.
    """

    tokenIn: TokenInView
    """What the payer sends."""
    tokenOut: TokenOutView
    """What the recipient gets."""
    estimatedTime: int
    """How many seconds the transfer is expected to take."""
    quoteExpiry: int
    """When the quote expires, in Unix seconds."""
    exchangeRate: str
    """How many output tokens one input token buys, before the fee."""


@frozen_view
class QuoteView:
    """A quote."""

    quoteData: QuoteDataView
    """Where the quote is paid."""
    payload: QuotePayloadView
    """What the quote offers."""


@frozen_view
class QuotedAmountsView:
    """The input and output amounts, in whole tokens; `fee` is in the output token."""

    inputAmount: str
    """The input amount, in whole tokens."""
    inputToken: str
    """The symbol of the token that the payer sends."""
    inputChain: int
    """The chain that the payer pays on."""
    outputAmount: str
    """The output amount, in whole tokens."""
    outputToken: str
    """The symbol of the token that the recipient gets."""
    outputChain: int
    """The chain on which the recipient is paid."""
    fee: str
    expiresAt: str


@frozen_view
class QuotedAddressView:
    """An address for one payment, and its quote."""

    depositAddress: str
    """The address for this one payment."""
    quote: QuotedAmountsView
    """The terms."""
    quoteId: str


@frozen_view
class TransferStateView:
    """Whether the recipient has the funds."""

    isTransferDone: bool
    """Whether the recipient has the funds."""


@frozen_view
class QuoteResponse(Success):
    """A quote."""

    data: QuoteView
    """The quote."""


@frozen_view
class QuotedAddressResponse(Success):
    """An address for one payment."""

    data: QuotedAddressView
    """The address and its terms."""


@frozen_view
class TransferStateResponse(Success):
    """Whether a transfer is done."""

    data: TransferStateView
    """Whether the transfer is done."""


def quote(found: Quote) -> QuoteView:
    """A quote."""
    source, destination = found.source, found.destination
    return QuoteView(
        quoteData=QuoteDataView(depositAddress=found.deposit_address, quoteId=found.id),
        payload=QuotePayloadView(
            tokenIn=TokenInView(
                address=source.address,
                inputTokenAmountRaw=str(found.input_atomic),
                inputTokenAmountRawFormatted=format_amount(found.input_atomic, source.decimals),
                inputValueInUSD=found.input_usd,
            ),
            tokenOut=TokenOutView(
                address=destination.address,
                outputTokenAmountRaw=str(found.output_atomic),
                outputTokenAmountRawFormatted=format_amount(
                    found.output_atomic, destination.decimals
                ),
                outputValueInUSD=found.output_usd,
                minimumOutput=str(found.minimum_atomic),
            ),
            estimatedTime=found.time_s,
            quoteExpiry=found.expires_at_ms // SECOND,
            exchangeRate=found.rate,
        ),
    )


def quoted_address(found: Quote) -> QuotedAddressView:
    """The address of a quote, and its amounts."""
    source, destination = found.source, found.destination
    return QuotedAddressView(
        depositAddress=found.deposit_address,
        quote=QuotedAmountsView(
            inputAmount=format_amount(found.input_atomic, source.decimals),
            inputToken=source.symbol,
            inputChain=source.chain_id,
            outputAmount=format_amount(found.output_atomic, destination.decimals),
            outputToken=destination.symbol,
            outputChain=destination.chain_id,
            fee=format_amount(found.fee_atomic, destination.decimals),
            expiresAt=format_iso(found.expires_at_ms),
        ),
        quoteId=found.id,
    )
