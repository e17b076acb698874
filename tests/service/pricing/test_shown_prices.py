"""Prices that pages show: recent ones or none, and no page waits long for a source."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction

import attrs
import pytest

from payments_core.networks import Asset
from payments_core.pricing.port import Pricing, PricingUnavailable
from payments_core.pricing.shown import ASK_EVERY_S, STALE_S, ShownPrice, ShownPrices
from payments_core.pricing.table import TablePricing
from tests.shipped import asset_of

USDC, DAI = asset_of(8453, "USDC"), attrs.evolve(asset_of(8453, "USDC"), symbol="DAI")
PATIENT_S = 10.0


class Source(TablePricing):
    """Answers as `answer` and `rate` say, and counts how often it was asked."""

    def __init__(
        self, answer: Callable[[], Decimal], rate: Callable[[], Decimal] = lambda: Decimal(4)
    ) -> None:
        super().__init__()
        self.answer, self.rate = answer, rate
        self.asked = self.asked_rates = 0

    def usd_prices(self, assets: Sequence[Asset]) -> Mapping[str, Decimal]:
        self.asked += 1
        price = self.answer()
        return {asset.id: price for asset in assets}

    def usd_rates(self, currencies: Sequence[str]) -> Mapping[str, Decimal]:
        self.asked_rates += 1
        rate = self.rate()
        return {code: rate for code in currencies if code == "EUR"}


@attrs.define
class Time:
    """A monotonic clock that a test sets."""

    now: float = 1_000.0

    def __call__(self) -> float:
        return self.now


def show(source: Pricing, clock: Callable[[], float], wait_s: float = PATIENT_S) -> ShownPrices:
    return ShownPrices({"sandbox": source}, clock=clock, wait_s=wait_s)


def usd(price: str | int) -> ShownPrice:
    return ShownPrice(Fraction(price), "USD")


def test_a_price_is_asked_for_once_for_all_pages_of_some_seconds() -> None:
    source, clock = Source(lambda: Decimal("0.99")), Time()
    prices = show(source, clock)
    assert [prices.find("sandbox", USDC) for _ in range(3)] == [usd("0.99")] * 3
    assert source.asked == 1
    clock.now += ASK_EVERY_S
    source.answer = lambda: Decimal("0.98")
    assert prices.find("sandbox", USDC) == usd("0.98")
    assert source.asked == 2


def test_there_is_none_without_a_source_or_for_a_token_without_a_price() -> None:
    assert ShownPrices({}).find("production", USDC) is None
    assert show(TablePricing(), Time()).find("sandbox", DAI) is None


def refuse() -> Decimal:
    raise PricingUnavailable("no round")


def fail() -> Decimal:
    raise KeyError("a mistake of the adapter")


@pytest.mark.parametrize(
    "answer", [refuse, fail, lambda: Decimal("NaN"), lambda: Decimal("1e9999")]
)
def test_a_source_that_has_none_now_takes_the_last_one_away(answer: Callable[[], Decimal]) -> None:
    source, clock = Source(lambda: Decimal(1)), Time()
    prices = show(source, clock)
    assert prices.find("sandbox", USDC) == usd(1)
    source.answer = answer
    clock.now += ASK_EVERY_S
    assert prices.find("sandbox", USDC) is None
    assert prices.find("sandbox", USDC) is None
    assert source.asked == 2, "a failure is not asked again at once"


def test_a_source_that_hangs_delays_a_page_once_and_shows_an_old_price_for_a_minute_only() -> None:
    gate = threading.Event()
    source, clock = Source(lambda: Decimal(1)), Time()
    prices = show(source, clock)
    assert prices.find("sandbox", USDC) == usd(1)
    prices._wait_s = 0.05

    def hang() -> Decimal:
        gate.wait(30)
        return Decimal(2)

    source.answer = hang
    clock.now += ASK_EVERY_S
    began = time.monotonic()
    assert prices.find("sandbox", USDC) == usd(1)
    clock.now += 1
    assert prices.find("sandbox", USDC) == usd(1), "no second thread, and no second wait"
    clock.now += STALE_S - ASK_EVERY_S
    assert prices.find("sandbox", USDC) is None
    assert (source.asked, time.monotonic() - began < 5) == (2, True)
    asking = [thread for thread in threading.enumerate() if thread.name == "price"]
    gate.set()
    for thread in asking:
        thread.join(10)
    clock.now += ASK_EVERY_S
    source.answer = lambda: Decimal(3)
    prices._wait_s = PATIENT_S
    assert prices.find("sandbox", USDC) == usd(3)


def test_a_forked_child_asks_again() -> None:
    source = Source(lambda: Decimal(1))
    prices = show(source, Time())
    prices.find("sandbox", USDC)
    prices.reset_after_fork()
    assert prices.find("sandbox", USDC) == usd(1)
    assert source.asked == 2


class TestTheMerchantsCurrency:
    """As exact as the source's prices, or US dollars."""

    def test_it_is_asked_for_once_beside_the_token_and_not_for_us_dollars(self) -> None:
        source, clock = Source(lambda: Decimal("0.99"), lambda: Decimal("1.1")), Time()
        prices = show(source, clock)
        assert prices.find("sandbox", USDC, "USD") == prices.find("sandbox", USDC) == usd("0.99")
        assert source.asked_rates == 0
        for _ in range(3):
            found = prices.find("sandbox", USDC, "EUR")
            assert found == ShownPrice(Fraction(9, 10), "EUR"), "not rounded"
        assert (source.asked, source.asked_rates) == (1, 1)

    @pytest.mark.parametrize("rate", [refuse, fail, lambda: Decimal(0), lambda: Decimal("NaN")])
    def test_it_is_us_dollars_while_there_is_no_rate(self, rate: Callable[[], Decimal]) -> None:
        prices = show(Source(lambda: Decimal(1), rate), Time())
        assert prices.find("sandbox", USDC, "EUR") == usd(1)
        assert show(Source(lambda: Decimal(1)), Time()).find("sandbox", USDC, "GBP") == usd(1)

    def test_it_is_us_dollars_where_the_source_knows_no_currency(self) -> None:
        class Tokens:
            usd_prices, estimate = TablePricing.usd_prices, TablePricing.estimate
            _usd = TablePricing()._usd

        assert show(Tokens(), Time()).find("sandbox", USDC, "EUR") == usd(1)  # type: ignore[arg-type]

    def test_a_rate_without_a_price_shows_nothing(self) -> None:
        assert show(Source(refuse), Time()).find("sandbox", USDC, "EUR") is None

    def test_a_rate_that_is_old_is_not_shown(self) -> None:
        source, clock = Source(lambda: Decimal(1)), Time()
        prices = show(source, clock)
        assert prices.find("sandbox", USDC, "EUR") == ShownPrice(Fraction(1, 4), "EUR")
        clock.now += STALE_S
        source.rate = refuse
        assert prices.find("sandbox", USDC, "EUR") == usd(1)

    def test_both_hanging_delay_a_page_by_one_wait(self) -> None:
        gate = threading.Event()

        def hang() -> Decimal:
            gate.wait(30)
            return Decimal(1)

        source = Source(hang, hang)
        first = iter([1_000.0])  # all the time has passed when the page begins to wait
        prices = show(source, lambda: next(first, 1_000.0 + PATIENT_S))
        began = time.monotonic()
        assert prices.find("sandbox", USDC, "EUR") is None
        took_s = time.monotonic() - began
        gate.set()
        assert took_s < PATIENT_S
