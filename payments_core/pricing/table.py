"""Prices from a table of settings, which never change: for the sandbox and for stablecoins.

As a URL: `table:?USDC=1&USDT=0.9995&fee_bps=5&slippage_bps=30&time_s=20`. A parameter in capitals
is a token or a currency (ISO 4217), and what one of it is worth in US dollars; the others are the
fields of `ExchangeCosts`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal

from payments_core.chains.port import Chain
from payments_core.networks import Asset
from payments_core.pricing.costs import (
    ExchangeCosts,
    divide_prices,
    parse_costs,
    parse_parameters,
    parse_price,
)
from payments_core.pricing.port import Estimate, NotPriced

STABLECOINS: Mapping[str, Decimal] = {"USDC": Decimal(1), "USDT": Decimal("0.9998")}

SANDBOX: Mapping[str, Decimal] = {
    **STABLECOINS,
    "EUR": Decimal("1.1"),
    "GBP": Decimal("1.3"),
    "CHF": Decimal("1.2"),
    "JPY": Decimal("0.0068"),
    "AUD": Decimal("0.65"),
    "CAD": Decimal("0.72"),
    "BRL": Decimal("0.18"),
    "KWD": Decimal("3.25"),
}
"""The table of a sandbox. Its rates of currencies are made up."""


class TablePricing:
    """Answers out of a table of prices in US dollars by a token's symbol or a currency's code."""

    def __init__(
        self, usd: Mapping[str, Decimal] = STABLECOINS, costs: ExchangeCosts | None = None
    ) -> None:
        self._usd = usd
        self._costs = costs or ExchangeCosts()

    def usd_prices(self, assets: Sequence[Asset]) -> Mapping[str, Decimal]:
        usd = self._usd
        return {asset.id: usd[asset.symbol] for asset in assets if asset.symbol in usd}

    def usd_rates(self, currencies: Sequence[str]) -> Mapping[str, Decimal]:
        return {code: self._usd[code] for code in currencies if code in self._usd}

    def estimate(self, source: Asset, destination: Asset, amount_atomic: int) -> Estimate:
        usd = self._usd
        for asset in (source, destination):
            if asset.symbol not in usd:
                raise NotPriced(asset)
        if source.id == destination.id:
            return self._costs.estimate_transfer()
        rate = divide_prices(usd[source.symbol], usd[destination.symbol])
        return self._costs.estimate_exchange(source, destination, amount_atomic, rate)


def open_url(url: str, *, chains: Mapping[int, Chain]) -> TablePricing:
    """The table that a URL describes; it needs no chain.

    Raises ValueError, which names the parameter.
    """
    head, _, query = url.partition("?")
    if head != "table:":
        raise ValueError("write a table of prices as table:?USDC=1&fee_bps=5")
    given = parse_parameters(query)
    usd = {name: parse_price(name, text) for name, text in given.items() if name.isupper()}
    costs = parse_costs({name: text for name, text in given.items() if not name.isupper()})
    return TablePricing(usd or STABLECOINS, costs)
