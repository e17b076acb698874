"""The terms of a quote: exact amounts from an estimate, rounded to nobody's gain. Pure.

The recipient's amount is rounded down, fees are rounded up.
"""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import attrs

from payments_core.errors import AmountOutOfRange
from payments_core.money import MAX_ATOMIC, format_amount
from payments_core.networks import Asset
from payments_core.payments.fees import deduct_fee
from payments_core.pricing.port import Estimate

_USD_DECIMALS = 6


@attrs.frozen(kw_only=True)
class QuoteTerms:
    """Atomic amounts. `paid_on` is the part of the input that the recipient or the router gets."""

    input_atomic: int
    paid_on: int
    output_atomic: int
    minimum_atomic: int
    fee_atomic: int


def compute_terms(
    source: Asset, destination: Asset, amount: int, fee_bps: int, estimate: Estimate
) -> QuoteTerms:
    """The terms for an amount of the source asset. Raises AmountOutOfRange if nothing is left,
    and if the output is more than a token can carry."""
    paid_on = deduct_fee(amount, fee_bps)
    output = convert(paid_on, source, destination, estimate.rate) - estimate.fee_atomic
    if output <= 0:
        raise AmountOutOfRange("it does not cover the fee")
    if output > MAX_ATOMIC:
        raise AmountOutOfRange("it is larger than any token supports")
    slippage = -(-output * estimate.slippage_bps // 10_000)
    return QuoteTerms(
        input_atomic=amount,
        paid_on=paid_on,
        output_atomic=output,
        minimum_atomic=max(1, output - slippage),
        fee_atomic=max(0, convert(amount, source, destination, estimate.rate) - output),
    )


def convert(amount: int, source: Asset, destination: Asset, rate: Decimal) -> int:
    """An amount of one asset in another, rounded down."""
    return int(Fraction(rate) * amount * Fraction(10) ** (destination.decimals - source.decimals))


def value_in_usd(amount: int, asset: Asset, price: Decimal | None) -> str | None:
    """The value of an amount, as decimal text of at most six places, rounded down."""
    if price is None:
        return None
    scaled = Fraction(price) * amount * Fraction(10) ** (_USD_DECIMALS - asset.decimals)
    return format_amount(int(scaled), _USD_DECIMALS)


def format_rate(rate: Decimal) -> str:
    """A rate as plain decimal text, without an exponent or zeros at its end."""
    text = format(rate, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text
