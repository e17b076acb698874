"""Sources of prices that each break one promise of the port, made out of a sound one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

import attrs

from payments_core.networks import Asset
from payments_core.pricing.port import Estimate, NotPriced, PricingUnavailable
from payments_core.pricing.table import SANDBOX, TablePricing


class Market:
    """What all see who opened the source: whether it is down, old or lies, and its prices."""

    def __init__(self) -> None:
        self.usd = dict(SANDBOX)
        self.down = self.old = self.lies = False


class Plain(TablePricing):
    """Sound."""

    def __init__(self, market: Market) -> None:
        super().__init__(market.usd)
        self.market = market

    def usd_prices(self, assets: Sequence[Asset]) -> Mapping[str, Decimal]:
        self._require_up()
        self._require_sound()
        return super().usd_prices(assets)

    def estimate(self, source: Asset, destination: Asset, amount_atomic: int) -> Estimate:
        self._require_up()
        self._require_sound()
        return super().estimate(source, destination, amount_atomic)

    def usd_rates(self, currencies: Sequence[str]) -> Mapping[str, Decimal]:
        self._require_up()
        self._require_sound()
        return super().usd_rates(currencies)

    def _require_up(self) -> None:
        if self.market.down:
            raise PricingUnavailable("it is down")

    def _require_sound(self) -> None:
        self._require_fresh()
        self._require_possible()

    def _require_fresh(self) -> None:
        if self.market.old:
            raise PricingUnavailable("the newest price is of yesterday")

    def _require_possible(self) -> None:
        if self.market.lies:
            raise PricingUnavailable("the price is zero")


class TellsFloats(Plain):
    def usd_prices(self, assets: Sequence[Asset]) -> Any:
        return {id: float(price) for id, price in super().usd_prices(assets).items()}


class PricesTheUnknownAtZero(Plain):
    def usd_prices(self, assets: Sequence[Asset]) -> Mapping[str, Decimal]:
        return {**{asset.id: Decimal(0) for asset in assets}, **super().usd_prices(assets)}


class TellsAllItKnows(Plain):
    def usd_prices(self, assets: Sequence[Asset]) -> Mapping[str, Decimal]:
        return {"1/USDC": Decimal(1), **super().usd_prices(assets)}


class TellsRatesAsFloats(Plain):
    def usd_rates(self, currencies: Sequence[str]) -> Any:
        return {code: float(rate) for code, rate in super().usd_rates(currencies).items()}


class TakesTheUnknownForADollar(Plain):
    def usd_rates(self, currencies: Sequence[str]) -> Mapping[str, Decimal]:
        return {**dict.fromkeys(currencies, Decimal(1)), **super().usd_rates(currencies)}


class EstimatesFeesInDecimals(Plain):
    def estimate(self, source: Asset, destination: Asset, amount_atomic: int) -> Any:
        found = super().estimate(source, destination, amount_atomic)
        return attrs.evolve(found, fee_atomic=Decimal(found.fee_atomic))


class TakesAFeeForNothing(Plain):
    def estimate(self, source: Asset, destination: Asset, amount_atomic: int) -> Estimate:
        found = super().estimate(source, destination, amount_atomic)
        return attrs.evolve(found, fee_atomic=found.fee_atomic + 1)


class ReckonsInFloats(Plain):
    def estimate(self, source: Asset, destination: Asset, amount_atomic: int) -> Estimate:
        found = super().estimate(source, destination, amount_atomic)
        return attrs.evolve(found, rate=Decimal(int(float(amount_atomic))) / amount_atomic)


class EstimatesTheUnknown(Plain):
    def estimate(self, source: Asset, destination: Asset, amount_atomic: int) -> Estimate:
        try:
            return super().estimate(source, destination, amount_atomic)
        except NotPriced:
            return Estimate(rate=Decimal(1), fee_atomic=0, slippage_bps=0, time_s=1)


class RaisesTimeouts(Plain):
    def _require_up(self) -> None:
        if self.market.down:
            raise TimeoutError


class AnswersWithOldPrices(Plain):
    def _require_fresh(self) -> None:
        pass


class AnswersWithTheLastPossiblePrice(Plain):
    def _require_possible(self) -> None:
        pass


class EstimatesWithOldPrices(AnswersWithOldPrices):
    def usd_prices(self, assets: Sequence[Asset]) -> Mapping[str, Decimal]:
        Plain._require_fresh(self)
        return super().usd_prices(assets)


class RatesWithOldPrices(Plain):
    def usd_rates(self, currencies: Sequence[str]) -> Mapping[str, Decimal]:
        self._require_up()
        return TablePricing.usd_rates(self, currencies)


class KeepsItsFirstPrices(Plain):
    def __init__(self, market: Market) -> None:
        super().__init__(market)
        self._usd = dict(market.usd)


class KeepsItsFirstRates(Plain):
    def estimate(self, source: Asset, destination: Asset, amount_atomic: int) -> Estimate:
        self._require_up()
        self._require_sound()
        return TablePricing().estimate(source, destination, amount_atomic)
