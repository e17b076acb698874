"""The pricing port: the promises of a source of prices.

Prices are decimals, never binary floating point. An answer holds only at that moment: the caller
freezes it in a quote. So an answer is the price of now, or there is none: a source that knows only
an old one, or one that cannot be right, raises PricingUnavailable.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Protocol, runtime_checkable

import attrs

from payments_core.networks import Asset


class PricingUnavailable(Exception):
    """The source did not answer, not in time, or with what must not be used. Ask again."""


class NotPriced(Exception):
    """The source has no price for an asset, or for a pair of assets. Asking again does not help."""

    def __init__(self, asset: Asset) -> None:
        super().__init__(f"there is no price for {asset.id}")
        self.asset = asset


@attrs.frozen(kw_only=True)
class Estimate:
    """The result of an exchange if it were made now.

    `rate` is how many whole tokens of the destination one whole token of the source buys, greater
    than zero. `fee_atomic` is taken from the bought amount, in the smallest unit of its asset. The
    recipient gets at most `slippage_bps` (0 to 10,000) less than expected, and waits about `time_s`
    seconds from when the funds were received.
    """

    rate: Decimal
    fee_atomic: int
    slippage_bps: int
    time_s: int


class Pricing(Protocol):
    """An adapter. It may be used from many threads at once."""

    def usd_prices(self, assets: Sequence[Asset]) -> Mapping[str, Decimal]:
        """The value of one whole token of each asset in US dollars, by the asset's id.

        An asset without a price is left out. Raises PricingUnavailable.
        """

    def estimate(self, source: Asset, destination: Asset, amount_atomic: int) -> Estimate:
        """The estimated amount of the destination asset for an amount of the source asset.

        For the same asset on the same chain, the rate is 1, and there is neither fee nor
        slippage. Raises PricingUnavailable, NotPriced.
        """


@runtime_checkable
class PricesCurrencies(Protocol):
    """A source of prices that knows rates of currencies, too."""

    def usd_rates(self, currencies: Sequence[str]) -> Mapping[str, Decimal]:
        """The value of one unit of each currency in US dollars, by its code (ISO 4217).

        A currency without a rate is left out. Raises PricingUnavailable.
        """
