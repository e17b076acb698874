"""Prices from a table of settings, which never change: for the sandbox and for stablecoins.

As a URL: `table:?USDC=1&USDT=0.9995&fee_bps=5&slippage_bps=30&time_s=20`. A parameter in capitals
is a token and its price in US dollars; the others are the fields of `PriceTable`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from decimal import Decimal, localcontext
from fractions import Fraction
from urllib.parse import parse_qsl

import attrs

from payments_core.networks import Asset
from payments_core.pricing.port import Estimate, NotPriced

_PRICE = re.compile(r"(?:0|[1-9][0-9]{0,11})(?:\.[0-9]{1,12})?", re.ASCII)
_COUNT = re.compile(r"[0-9]{1,9}", re.ASCII)
_DIGITS = 28
"""The digits kept of a rate; more than any amount of a stablecoin needs."""

STABLECOINS: Mapping[str, Decimal] = {"USDC": Decimal(1), "USDT": Decimal("0.9998")}


@attrs.frozen(kw_only=True)
class PriceTable:
    """Prices by the token's symbol, in US dollars, and the cost and duration of every exchange.

    The fee is `fee_bps` of the bought amount, rounded up, and `fixed_fee_atomic` of its smallest
    unit.
    """

    usd: Mapping[str, Decimal] = attrs.field(factory=lambda: STABLECOINS)
    fee_bps: int = 5
    fixed_fee_atomic: int = 10_000
    slippage_bps: int = 30
    time_s: int = 20
    transfer_time_s: int = 10


class TablePricing:
    """Answers out of a table."""

    def __init__(self, table: PriceTable | None = None) -> None:
        self._table = table or PriceTable()

    def usd_prices(self, assets: Sequence[Asset]) -> Mapping[str, Decimal]:
        usd = self._table.usd
        return {asset.id: usd[asset.symbol] for asset in assets if asset.symbol in usd}

    def estimate(self, source: Asset, destination: Asset, amount_atomic: int) -> Estimate:
        table = self._table
        for asset in (source, destination):
            if asset.symbol not in table.usd:
                raise NotPriced(asset)
        if source.id == destination.id:
            return Estimate(
                rate=Decimal(1), fee_atomic=0, slippage_bps=0, time_s=table.transfer_time_s
            )
        with localcontext(prec=_DIGITS):
            rate = table.usd[source.symbol] / table.usd[destination.symbol]
        scale = Fraction(10) ** (destination.decimals - source.decimals)
        bought = int(Fraction(rate) * amount_atomic * scale)
        fee = -(-bought * table.fee_bps // 10_000) + table.fixed_fee_atomic
        return Estimate(
            rate=rate, fee_atomic=fee, slippage_bps=table.slippage_bps, time_s=table.time_s
        )


def open_url(url: str) -> TablePricing:
    """The table that a URL describes. Raises ValueError, which names the parameter."""
    head, _, query = url.partition("?")
    if head != "table:":
        raise ValueError("write a table of prices as table:?USDC=1&fee_bps=5")
    pairs = parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query))
    given = dict(pairs)
    if len(given) != len(pairs):
        raise ValueError("a parameter is given twice")
    counts = {field.name for field in attrs.fields(PriceTable)} - {"usd"}
    settings: dict[str, int] = {}
    usd: dict[str, Decimal] = {}
    for name, text in given.items():
        if name in counts:
            settings[name] = _parse_count(name, text)
        elif name.isupper():
            usd[name] = _parse_price(name, text)
        else:
            raise ValueError(f"there is no parameter {name}")
    return TablePricing(PriceTable(usd=usd or STABLECOINS, **settings))


def _parse_count(name: str, text: str) -> int:
    if not _COUNT.fullmatch(text):
        raise ValueError(f"{name} must be a whole number")
    if name.endswith("_bps") and int(text) > 10_000:
        raise ValueError(f"{name} must be at most 10000")
    return int(text)


def _parse_price(name: str, text: str) -> Decimal:
    if not _PRICE.fullmatch(text) or not Decimal(text):
        raise ValueError(f"{name} must be a decimal such as 0.9995, greater than zero")
    return Decimal(text)
