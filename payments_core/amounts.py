"""Amounts as callers write them: read to the last digit, or refused by name."""

from __future__ import annotations

from payments_core.errors import AmountOutOfRange, ValidationFailed
from payments_core.money import AmountTooLarge, MoneyError, parse_amount
from payments_core.networks import Asset


def parse_positive_amount(text: str, asset: Asset, path: str = "amount") -> int:
    """The atomic amount of a decimal text, more than zero.

    Raises ValidationFailed at `path` for a text that is not an amount of the asset, and
    AmountOutOfRange for zero and for more than a token can carry.
    """
    amount = parse_nonnegative_amount(text, asset, path)
    if amount == 0:
        raise AmountOutOfRange("it must be greater than zero")
    return amount


def parse_nonnegative_amount(text: str, asset: Asset, path: str = "amount") -> int:
    """As `parse_positive_amount`, but zero is allowed: anybody may transfer nothing."""
    try:
        return parse_amount(text, asset.decimals)
    except AmountTooLarge:
        raise AmountOutOfRange("it is larger than any token supports") from None
    except MoneyError as error:
        raise ValidationFailed.at(path, str(error)) from None
