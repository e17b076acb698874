"""Prices that pages show: recent ones or none, and no page waits long for a source."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal

import attrs
import pytest

from payments_core.networks import Asset
from payments_core.pricing.port import Pricing, PricingUnavailable
from payments_core.pricing.shown import ASK_EVERY_S, STALE_S, ShownPrices
from payments_core.pricing.table import TablePricing
from tests.shipped import asset_of

USDC, DAI = asset_of(8453, "USDC"), attrs.evolve(asset_of(8453, "USDC"), symbol="DAI")
PATIENT_S = 10.0


class Source(TablePricing):
    """Answers as `answer` says, and counts how often it was asked."""

    def __init__(self, answer: Callable[[], Decimal]) -> None:
        super().__init__()
        self.answer = answer
        self.asked = 0

    def usd_prices(self, assets: Sequence[Asset]) -> Mapping[str, Decimal]:
        self.asked += 1
        price = self.answer()
        return {asset.id: price for asset in assets}


@attrs.define
class Time:
    """A monotonic clock that a test sets."""

    now: float = 1_000.0

    def __call__(self) -> float:
        return self.now


def show(source: Pricing, clock: Callable[[], float], wait_s: float = PATIENT_S) -> ShownPrices:
    return ShownPrices({"sandbox": source}, clock=clock, wait_s=wait_s)


def test_a_price_is_asked_for_once_for_all_pages_of_some_seconds() -> None:
    source, clock = Source(lambda: Decimal("0.99")), Time()
    prices = show(source, clock)
    assert [prices.find("sandbox", USDC) for _ in range(3)] == [Decimal("0.99")] * 3
    assert source.asked == 1
    clock.now += ASK_EVERY_S
    source.answer = lambda: Decimal("0.98")
    assert prices.find("sandbox", USDC) == Decimal("0.98")
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
    assert prices.find("sandbox", USDC) == 1
    source.answer = answer
    clock.now += ASK_EVERY_S
    assert prices.find("sandbox", USDC) is None
    assert prices.find("sandbox", USDC) is None
    assert source.asked == 2, "a failure is not asked again at once"


def test_a_source_that_hangs_delays_a_page_once_and_shows_an_old_price_for_a_minute_only() -> None:
    gate = threading.Event()
    source, clock = Source(lambda: Decimal(1)), Time()
    prices = show(source, clock)
    assert prices.find("sandbox", USDC) == 1
    prices._wait_s = 0.05

    def hang() -> Decimal:
        gate.wait(30)
        return Decimal(2)

    source.answer = hang
    clock.now += ASK_EVERY_S
    began = time.monotonic()
    assert prices.find("sandbox", USDC) == 1
    clock.now += 1
    assert prices.find("sandbox", USDC) == 1, "no second thread, and no second wait"
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
    assert prices.find("sandbox", USDC) == 3


def test_a_forked_child_asks_again() -> None:
    source = Source(lambda: Decimal(1))
    prices = show(source, Time())
    prices.find("sandbox", USDC)
    prices.reset_after_fork()
    assert prices.find("sandbox", USDC) == 1
    assert source.asked == 2
