"""The pricing suite: each broken source fails the check that guards its promise."""

from __future__ import annotations

from decimal import Decimal

import pytest

from payments_core.conformance.pricing import PricingConformance
from payments_core.networks import Asset
from payments_core.pricing.port import Pricing
from tests.broken_adapters import broken_pricing as broken
from tests.broken_adapters.failing_checks import checks_of, failures
from tests.shipped import asset_of

USDC_ON_ETHEREUM, USDT_ON_ETHEREUM = asset_of(1, "USDC"), asset_of(1, "USDT")

EXPECTED_FAILURES: tuple[tuple[type[broken.Plain], str], ...] = (
    (broken.TellsFloats, "a_price_is_a_decimal_above_zero"),
    (broken.PricesTheUnknownAtZero, "an_asset_without_a_price_is_left_out"),
    (broken.TellsAllItKnows, "no_assets_have_no_prices"),
    (broken.TellsRatesAsFloats, "a_rate_of_a_currency_is_a_decimal_above_zero"),
    (broken.TakesTheUnknownForADollar, "a_currency_without_a_rate_is_left_out"),
    (broken.EstimatesFeesInDecimals, "an_estimate_is_complete"),
    (broken.TakesAFeeForNothing, "one_asset_is_exchanged_for_itself_without_a_loss"),
    (broken.ReckonsInFloats, "an_amount_of_thirty_digits_loses_none"),
    (broken.EstimatesTheUnknown, "a_pair_without_a_price_is_refused"),
    (broken.RaisesTimeouts, "a_source_that_is_down_is_unavailable"),
    (broken.AnswersWithOldPrices, "an_old_price_is_none"),
    (broken.EstimatesWithOldPrices, "an_old_price_is_none"),
    (broken.RatesWithOldPrices, "an_old_price_is_none"),
    (broken.RatesWithOldPrices, "an_impossible_price_is_none"),
    (broken.AnswersWithTheLastPossiblePrice, "an_impossible_price_is_none"),
    (broken.KeepsItsFirstPrices, "a_price_follows_the_market"),
    (broken.KeepsItsFirstRates, "a_price_follows_the_market"),
)


class Suite(PricingConformance):
    pairs = ((USDC_ON_ETHEREUM, USDT_ON_ETHEREUM),)
    can_fail = can_go_stale = can_lie = can_move = can_price_currencies = True

    def __init__(self, pricing_class: type[broken.Plain]) -> None:
        self.pricing_class = pricing_class
        self.market = broken.Market()

    def open(self) -> Pricing:
        return self.pricing_class(self.market)

    def fail(self) -> None:
        self.market.down = True

    def go_stale(self) -> None:
        self.market.old = True

    def lie(self) -> None:
        self.market.lies = True

    def restore(self) -> None:
        self.market.down = self.market.old = self.market.lies = False

    def move(self, asset: Asset, usd: Decimal) -> None:
        self.market.usd[asset.symbol] = usd


@pytest.mark.parametrize(("pricing", "check"), EXPECTED_FAILURES)
def test_a_broken_source_fails_its_check(pricing: type[broken.Plain], check: str) -> None:
    assert list(failures(Suite(pricing), check)), f"{check} passes on {pricing.__name__}"


@pytest.mark.parametrize("check", sorted({check for _, check in EXPECTED_FAILURES}))
def test_what_the_broken_sources_are_made_of_is_sound(check: str) -> None:
    for error in failures(Suite(broken.Plain), check):
        raise AssertionError(f"{check} fails on Plain") from error


def test_every_check_fails_a_broken_source() -> None:
    assert checks_of(PricingConformance) == {check for _, check in EXPECTED_FAILURES}
