"""The promises of every source of prices."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal

from payments_core.conformance.pricing.harness import Harness
from payments_core.pricing.port import (
    Estimate,
    NotPriced,
    PricesCurrencies,
    PricingUnavailable,
)

_ROUNDING = Decimal("0.0001")


class PricingChecks(Harness):
    """Prices are decimals, estimates are complete, and unknown ones are reported as such."""

    def test_a_price_is_a_decimal_above_zero(self) -> None:
        assets = sorted({asset for pair in self.pairs for asset in pair}, key=lambda one: one.id)
        prices = self.open().usd_prices(assets)
        assert prices.keys() == {asset.id for asset in assets}, "each asset must have its price"
        for id, price in prices.items():
            _require_rate(price, f"the price of {id}")

    def test_an_asset_without_a_price_is_left_out(self) -> None:
        known = self.pairs[0][0]
        prices = self.open().usd_prices((known, self.unknown))
        assert set(prices) == {known.id}, f"only {known.id} has a price, not {set(prices)}"

    def test_no_assets_have_no_prices(self) -> None:
        assert dict(self.open().usd_prices(())) == {}, "no asset was requested"

    def test_an_estimate_is_complete(self) -> None:
        for source, destination in self.pairs:
            _require_complete(self.open().estimate(source, destination, self.amount_atomic))

    def test_one_asset_is_exchanged_for_itself_without_a_loss(self) -> None:
        source = self.pairs[0][0]
        found = self.open().estimate(source, source, self.amount_atomic)
        _require_complete(found)
        estimate = (found.rate, found.fee_atomic, found.slippage_bps)
        assert estimate == (Decimal(1), 0, 0), f"nothing is exchanged, but it was: {estimate}"

    def test_an_amount_of_thirty_digits_loses_none(self) -> None:
        source = self.pairs[0][0]
        found = self.open().estimate(source, source, 10**30 - 1)
        assert found.rate == 1, f"the rate must not depend on the amount, but was {found.rate}"

    def test_a_pair_without_a_price_is_refused(self) -> None:
        known = self.pairs[0][0]
        for source, destination in ((known, self.unknown), (self.unknown, known)):
            try:
                answer = self.open().estimate(source, destination, self.amount_atomic)
            except NotPriced as refusal:
                named = refusal.asset
            else:
                raise AssertionError(f"a pair without a price must be refused, but got {answer}")
            assert named == self.unknown, f"the refusal must name the asset, not {named.id}"

    def test_a_rate_of_a_currency_is_a_decimal_above_zero(self) -> None:
        self.require_capability("can_price_currencies")
        rates = self._open_currencies().usd_rates(self.currencies)
        assert rates.keys() == set(self.currencies), "each currency must have its rate"
        for code, rate in rates.items():
            _require_rate(rate, f"the rate of {code}")

    def test_a_currency_without_a_rate_is_left_out(self) -> None:
        self.require_capability("can_price_currencies")
        known = self.currencies[0]
        rates = self._open_currencies().usd_rates((known, self.unknown_currency))
        assert set(rates) == {known}, f"only {known} has a rate, not {set(rates)}"

    def test_a_source_that_is_down_is_unavailable(self) -> None:
        self.require_capability("can_fail")
        self._require_none_while(self.fail)

    def test_an_old_price_is_none(self) -> None:
        self.require_capability("can_go_stale")
        self._require_none_while(self.go_stale)

    def test_an_impossible_price_is_none(self) -> None:
        self.require_capability("can_lie")
        self._require_none_while(self.lie)

    def test_a_price_follows_the_market(self) -> None:
        self.require_capability("can_move")
        (source, destination), opened = self.pairs[0], self.open()
        before = opened.estimate(source, destination, self.amount_atomic).rate
        moved = opened.usd_prices((source,))[source.id] * Decimal("0.9")
        self.move(source, moved)
        found = opened.usd_prices((source,))[source.id]
        assert abs(found - moved) <= moved * _ROUNDING, f"it is at {moved} now, not at {found}"
        rate = opened.estimate(source, destination, self.amount_atomic).rate
        expected = before * Decimal("0.9")
        assert abs(rate - expected) <= expected * _ROUNDING, f"the rate is {expected}, not {rate}"

    def _require_none_while(self, break_it: Callable[[], None]) -> None:
        """No price and no estimate, and both again by the same handle after `restore`."""
        (source, destination), opened = self.pairs[0], self.open()
        _require_complete(opened.estimate(source, destination, self.amount_atomic))
        break_it()
        _require_unavailable(lambda: opened.usd_prices((source,)))
        _require_unavailable(lambda: opened.estimate(source, destination, self.amount_atomic))
        if self.can_price_currencies:
            known = _as_currencies(opened)
            _require_unavailable(lambda: known.usd_rates(self.currencies))
        self.restore()
        _require_complete(opened.estimate(source, destination, self.amount_atomic))

    def _open_currencies(self) -> PricesCurrencies:
        return _as_currencies(self.open())


def _as_currencies(opened: object) -> PricesCurrencies:
    assert isinstance(opened, PricesCurrencies), "the source must have `usd_rates`"
    return opened


def _require_complete(found: Estimate) -> None:
    _require_rate(found.rate, "the rate")
    for name in ("fee_atomic", "slippage_bps", "time_s"):
        value = getattr(found, name)
        assert type(value) is int, f"{name} must be an integer, but is {value!r}"
        assert value >= 0, f"{name} must not be below zero, but is {value!r}"
    assert found.slippage_bps <= 10_000, "slippage must be at most 100%"


def _require_rate(rate: object, what: str) -> None:
    assert type(rate) is Decimal, f"{what} must be a Decimal, but is a {type(rate).__name__}"
    assert rate.is_finite(), f"{what} must be a number, but is {rate}"
    assert rate > 0, f"{what} must be greater than zero, but is {rate}"


def _require_unavailable(call: Callable[[], object]) -> None:
    try:
        answer = call()
    except PricingUnavailable:
        return
    except Exception as error:
        raise AssertionError(
            f"the call must raise PricingUnavailable, not {type(error).__name__}"
        ) from error
    raise AssertionError(f"the call must raise PricingUnavailable, but returned {answer!r}")
