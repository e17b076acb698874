"""What every exchange costs and how long it takes, as an operator writes it in a source's URL.

No source of prices knows these: they are the router's, or the operator's own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal, localcontext
from fractions import Fraction
from urllib.parse import parse_qsl

import attrs

from payments_core.networks import Asset
from payments_core.pricing.port import Estimate

_COUNT = re.compile(r"[0-9]{1,9}", re.ASCII)
_PRICE = re.compile(r"(?:0|[1-9][0-9]{0,11})(?:\.[0-9]{1,12})?", re.ASCII)
_DIGITS = 28
"""The digits kept of a rate; more than any amount of a stablecoin needs."""


@attrs.frozen(kw_only=True)
class ExchangeCosts:
    """The cost and duration of every exchange.

    The fee is `fee_bps` of the bought amount, rounded up, and `fixed_fee_atomic` of its smallest
    unit. `transfer_time_s` is the duration of a transfer that exchanges nothing.
    """

    fee_bps: int = 5
    fixed_fee_atomic: int = 10_000
    slippage_bps: int = 30
    time_s: int = 20
    transfer_time_s: int = 10

    def estimate_transfer(self) -> Estimate:
        """An asset for itself on the same chain: at 1, without a fee or slippage."""
        return Estimate(rate=Decimal(1), fee_atomic=0, slippage_bps=0, time_s=self.transfer_time_s)

    def estimate_exchange(
        self, source: Asset, destination: Asset, amount_atomic: int, rate: Decimal
    ) -> Estimate:
        """An amount of the source asset for another, at this rate."""
        scale = Fraction(10) ** (destination.decimals - source.decimals)
        bought = int(Fraction(rate) * amount_atomic * scale)
        return Estimate(
            rate=rate,
            fee_atomic=-(-bought * self.fee_bps // 10_000) + self.fixed_fee_atomic,
            slippage_bps=self.slippage_bps,
            time_s=self.time_s,
        )


def divide_prices(source_usd: Decimal, destination_usd: Decimal) -> Decimal:
    """The rate between two prices."""
    with localcontext(prec=_DIGITS):
        return source_usd / destination_usd


def parse_parameters(query: str) -> dict[str, str]:
    """The parameters of a URL, each at most once. Raises ValueError."""
    pairs = parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query))
    given = dict(pairs)
    if len(given) != len(pairs):
        raise ValueError("a parameter is given twice")
    return given


def parse_costs(given: Mapping[str, str]) -> ExchangeCosts:
    """The costs that parameters describe. Raises ValueError, which names the parameter."""
    counts = {field.name for field in attrs.fields(ExchangeCosts)}
    for name in given:
        if name not in counts:
            raise ValueError(f"there is no parameter {name}")
    return ExchangeCosts(**{name: parse_count(name, text) for name, text in given.items()})


def parse_count(name: str, text: str) -> int:
    """A whole number; at most 10,000 if its name says that it is of basis points."""
    if not _COUNT.fullmatch(text):
        raise ValueError(f"{name} must be a whole number")
    if name.endswith("_bps") and int(text) > 10_000:
        raise ValueError(f"{name} must be at most 10000")
    return int(text)


def parse_price(name: str, text: str) -> Decimal:
    """A price above zero. Raises ValueError, which names it."""
    if not _PRICE.fullmatch(text) or not Decimal(text):
        raise ValueError(f"{name} must be a decimal such as 0.9995, greater than zero")
    return Decimal(text)
