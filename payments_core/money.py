"""Money: integers of an asset's smallest unit, and their exact decimal texts.

There is no floating point here, nor anywhere else (contract §1).
"""

from __future__ import annotations

import re

import attrs

MAX_DIGITS = 78
"""An EVM token counts in 256 bits, which is 78 digits."""

MAX_ATOMIC = 2**256 - 1
"""The maximum amount of an EVM token."""

_DECIMAL = re.compile(r"(0|[1-9][0-9]*)(?:\.([0-9]+))?", re.ASCII)


class MoneyError(ValueError):
    """A text that is not an amount of this asset, or a sum over two assets."""


class AmountTooLarge(MoneyError):
    """A valid decimal text of more than a token can carry."""


class Atomic(int):
    """A count of an asset's smallest unit, stored as digits since JSON numbers lose them."""

    __slots__ = ()


ZERO = Atomic(0)


def atomic(value: int) -> Atomic:
    """The converter of a record's amount fields: results of arithmetic become `Atomic` again."""
    return value if type(value) is Atomic else Atomic(value)


@attrs.frozen
class Money:
    """An amount with its asset (`chainId/symbol`); amounts of two assets cannot be added.

    >>> payment.remaining
    Money(amount_atomic=25000000, asset_id='8453/USDC')
    """

    amount_atomic: int
    asset_id: str

    def __add__(self, other: Money) -> Money:
        return Money(self.amount_atomic + self._require_same_asset(other), self.asset_id)

    def __sub__(self, other: Money) -> Money:
        return Money(self.amount_atomic - self._require_same_asset(other), self.asset_id)

    def __le__(self, other: Money) -> bool:
        return self.amount_atomic <= self._require_same_asset(other)

    def __lt__(self, other: Money) -> bool:
        return self.amount_atomic < self._require_same_asset(other)

    def _require_same_asset(self, other: Money) -> int:
        if other.asset_id != self.asset_id:
            raise MoneyError(f"{self.asset_id} and {other.asset_id} do not add up")
        return other.amount_atomic


def parse_amount(text: str, decimals: int) -> int:
    """The atomic amount of a decimal text: no sign, no exponent, at most `decimals` places.

    Raises MoneyError with a sentence fit for the caller, AmountTooLarge beyond MAX_ATOMIC.
    """
    match = _DECIMAL.fullmatch(text)
    if match is None:
        raise MoneyError("must be a decimal string such as 25.00, with no sign or exponent")
    fraction = match[2] or ""
    if len(fraction) > decimals:
        raise MoneyError(f"must have at most {decimals} decimals")
    digits = match[1] + fraction.ljust(decimals, "0")
    # The digits first: Python refuses to make a number of thousands of them.
    if len(digits.lstrip("0")) > MAX_DIGITS or int(digits) > MAX_ATOMIC:
        raise AmountTooLarge("is larger than any token supports")
    return int(digits)


def format_amount(amount_atomic: int, decimals: int) -> str:
    """The decimal text of an atomic amount, with at least two places if the asset has them."""
    digits = str(amount_atomic).rjust(decimals + 1, "0")
    if decimals == 0:
        return digits
    whole, fraction = digits[:-decimals], digits[-decimals:]
    return f"{whole}.{fraction.rstrip('0').ljust(min(2, decimals), '0')}"


def format_signed_amount(amount_atomic: int, decimals: int) -> str:
    """The decimal text of an amount that may be below zero."""
    sign = "-" if amount_atomic < 0 else ""
    return sign + format_amount(abs(amount_atomic), decimals)
