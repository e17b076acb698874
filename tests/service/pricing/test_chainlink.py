"""Prices out of feeds: the suite, what is read of which chain, and how a URL describes it."""

from __future__ import annotations

import logging
from decimal import Decimal
from pathlib import Path

import pytest

from payments_core.clock import DAY, HOUR, SECOND, FixedClock
from payments_core.conformance.pricing import PricingConformance
from payments_core.networks import Asset, shipped_networks
from payments_core.port_loader import open_pricing
from payments_core.pricing.chainlink import ChainlinkPricing, open_url
from payments_core.pricing.costs import ExchangeCosts
from payments_core.pricing.feeds import shipped_feeds
from payments_core.pricing.port import Pricing, PricingUnavailable
from payments_core.pricing.rounds import Round
from tests.service.pricing.feed_answers import FeedsOnAChain, as_chains
from tests.shipped import asset_of

ETHEREUM, BASE = 1, 8453
USDC, USDT, BASE_USDC = asset_of(1, "USDC"), asset_of(1, "USDT"), asset_of(BASE, "USDC")
FEEDS = shipped_feeds()
USDC_FEED, USDT_FEED = (FEEDS[1].by_symbol[symbol].address for symbol in ("USDC", "USDT"))
EURO_FEED, BASE_EURO_FEED = (FEEDS[number].currencies["EUR"].address for number in (1, BASE))
BASE_FEED, SEQUENCER = FEEDS[BASE].by_symbol["USDC"].address, FEEDS[BASE].sequencer or ""


class Market:
    """The shipped feeds of Ethereum and Base, sound at first."""

    def __init__(self) -> None:
        self.clock = FixedClock()
        self.ethereum, self.base = FeedsOnAChain(), FeedsOnAChain()
        self.base.report(SEQUENCER, 0, self.now_s - 30 * 86_400)
        self.report()

    @property
    def now_s(self) -> int:
        return self.clock.now() // SECOND

    def report(self, usdc: str = "0.9999", usdt: str = "1.0001", euro: str = "1.085") -> None:
        """Every feed of a price reports."""
        for chain, address, price in (
            (self.ethereum, USDC_FEED, usdc), (self.base, BASE_FEED, usdc),
            (self.ethereum, USDT_FEED, usdt),
            (self.ethereum, EURO_FEED, euro), (self.base, BASE_EURO_FEED, euro),
        ):  # fmt: skip
            chain.report(address, int(Decimal(price) * 10**8), self.now_s)

    def open(self, shared_for_s: float = 0.0) -> ChainlinkPricing:
        chains = as_chains({ETHEREUM: self.ethereum, BASE: self.base})
        return ChainlinkPricing(chains, FEEDS, clock=self.clock, shared_for_s=shared_for_s)


@pytest.fixture
def market() -> Market:
    return Market()


class TestFeeds(PricingConformance):
    pairs = ((USDC, USDT), (USDC, BASE_USDC), (BASE_USDC, USDT))
    can_fail = can_go_stale = can_lie = can_move = can_price_currencies = True

    def setup_method(self) -> None:
        self.market = Market()

    def open(self) -> Pricing:
        return self.market.open()

    def fail(self) -> None:
        self.market.ethereum.is_silent = self.market.base.is_silent = True

    def go_stale(self) -> None:
        self.market.clock.advance(2 * DAY // SECOND)

    def lie(self) -> None:
        self.market.report(usdc="0", euro="0")

    def restore(self) -> None:
        self.market.ethereum.is_silent = self.market.base.is_silent = False
        self.market.report()

    def move(self, asset: Asset, usd: Decimal) -> None:
        self.market.ethereum.report(USDC_FEED, int(usd * 10**8), self.market.now_s)


def test_a_depeg_is_in_the_price_and_in_the_rate(market: Market) -> None:
    opened = market.open()
    market.report(usdc="0.88", usdt="1.0")
    assert opened.usd_prices((USDC, BASE_USDC)) == {
        USDC.id: Decimal("0.88"), BASE_USDC.id: Decimal("0.88")
    }  # fmt: skip
    assert opened.estimate(USDC, USDT, 10**6).rate == Decimal("0.88")
    assert opened.estimate(USDT, USDC, 10**6).rate.quantize(Decimal("0.0001")) == Decimal("1.1364")


def test_a_token_is_worth_itself_on_another_chain(market: Market) -> None:
    market.ethereum.report(USDC_FEED, 99_600_000, market.now_s)  # within the spread of 1 %
    found = market.open().estimate(USDC, BASE_USDC, 100_000_000)
    # five hundredths of a percent, and a cent
    assert (found.rate, found.fee_atomic, found.slippage_bps) == (1, 50_000 + 10_000, 30)


def test_feeds_of_one_token_that_differ_are_no_price(market: Market) -> None:
    opened = market.open()
    market.base.report(BASE_FEED, 89_000_000, market.now_s)
    for ask in (
        lambda: opened.estimate(USDC, BASE_USDC, 10**6),
        lambda: opened.usd_prices((BASE_USDC, USDC)),
    ):
        with pytest.raises(PricingUnavailable, match=r"USDC differ: 0\.89\d* to 0\.9999"):
            ask()
    assert opened.usd_prices((BASE_USDC,)) == {BASE_USDC.id: Decimal("0.89")}


def test_a_currency_has_the_rate_of_any_chain_whose_feed_is_sound(market: Market) -> None:
    opened = market.open()
    market.base.report(BASE_EURO_FEED, 108_900_000, market.now_s)
    assert opened.usd_rates(("EUR", "XTS")) == {"EUR": Decimal("1.089")}
    market.ethereum.is_silent = True
    assert opened.usd_rates(("EUR",)) == {"EUR": Decimal("1.089")}
    market.base.report(SEQUENCER, 1, market.now_s)
    with pytest.raises(PricingUnavailable):
        opened.usd_rates(("EUR",))


def test_feeds_of_one_currency_that_differ_are_no_rate(market: Market) -> None:
    market.base.report(BASE_EURO_FEED, 110_000_000, market.now_s)
    with pytest.raises(PricingUnavailable, match=r"EUR differ: 1\.085\d* to 1\.1"):
        market.open().usd_rates(("EUR",))


def test_a_quote_pays_for_no_feed_of_a_currency(market: Market) -> None:
    opened = market.open(shared_for_s=60)
    opened.estimate(USDC, USDT, 10**6)
    assert market.ethereum.asked == {USDC_FEED, USDT_FEED}
    opened.usd_rates(("EUR",))
    opened.usd_rates(("EUR",))
    assert market.ethereum.asked == {USDC_FEED, USDT_FEED, EURO_FEED}
    assert (market.ethereum.queries, market.base.queries) == (2, 1)


def test_a_rollup_has_no_price_while_its_sequencer_is_down_and_an_hour_longer(
    market: Market, caplog: pytest.LogCaptureFixture
) -> None:
    opened = market.open()
    market.base.report(SEQUENCER, 1, market.now_s)
    for answer, wait_s, says in (
        (1, 60, "the sequencer is down"),
        (0, HOUR // SECOND - 1, "the sequencer is up only since"),
    ):
        market.base.report(SEQUENCER, answer, market.now_s)
        market.clock.advance(wait_s)
        with pytest.raises(PricingUnavailable, match=says):
            opened.usd_prices((BASE_USDC,))
    assert opened.usd_prices((USDC,)) == {USDC.id: Decimal("0.9999")}
    market.clock.advance(1)
    assert opened.usd_prices((BASE_USDC,)) == {BASE_USDC.id: Decimal("0.9999")}
    assert [record.levelno for record in caplog.records] == [logging.WARNING] * 2
    assert "chain 8453: no price of USDC: the sequencer is down" in caplog.text


def test_one_bad_feed_takes_no_other_price(market: Market) -> None:
    market.ethereum.rounds[USDT_FEED] = None  # it reverts
    opened = market.open()
    assert opened.usd_prices((USDC,)) == {USDC.id: Decimal("0.9999")}
    with pytest.raises(PricingUnavailable, match="no price of 1/USDT: it has no round"):
        opened.usd_prices((USDC, USDT))


def test_an_unfinished_round_is_no_price(market: Market) -> None:
    market.ethereum.rounds[USDC_FEED] = Round(9, 10**8, market.now_s, 0, 0)
    with pytest.raises(PricingUnavailable, match="not finished"):
        market.open().usd_prices((USDC,))


def test_a_quote_asks_each_chain_once(market: Market) -> None:
    opened = market.open(shared_for_s=60)
    for _ in range(3):
        opened.estimate(USDC, BASE_USDC, 10**6)
        opened.usd_prices((USDC, BASE_USDC, USDT))
    assert (market.ethereum.queries, market.base.queries) == (1, 1)


def test_only_chains_that_are_priced_are_asked(market: Market) -> None:
    opened = market.open()
    opened.estimate(USDC, USDT, 10**6)
    assert (market.ethereum.queries > 0, market.base.queries) == (True, 0)


def test_silence_is_not_kept(market: Market) -> None:
    opened = market.open(shared_for_s=60)
    market.ethereum.is_silent = True
    with pytest.raises(PricingUnavailable, match="chain 1 does not answer"):
        opened.usd_prices((USDC,))
    market.ethereum.is_silent = False
    assert opened.usd_prices((USDC,)) == {USDC.id: Decimal("0.9999")}


def test_every_shipped_token_has_a_feed() -> None:
    for network in shipped_networks().values():
        assert {token.symbol for token in network.tokens} <= FEEDS[
            network.chain_id
        ].by_symbol.keys()
    assert {number for number, feeds in FEEDS.items() if feeds.sequencer} == {10, BASE, 42161}


def test_a_url_names_the_costs_and_the_file(market: Market, tmp_path: Path) -> None:
    chains = as_chains({BASE: market.base})
    assert isinstance(open_pricing("chainlink:", chains=chains), ChainlinkPricing)
    own = tmp_path / "feeds.toml"
    bounds = 'lowest_usd = "0.9", highest_usd = "1.1"'
    feed = f'symbol = "USDC", address = "{BASE_FEED}", heartbeat_s = 60, {bounds}, source = "ours"'
    own.write_text(f"[8453]\nfeeds = [{{ {feed} }}]\n")
    opened = open_url(f"chainlink:{own}?fee_bps=0&fixed_fee_atomic=3&spread_bps=5", chains=chains)
    assert opened._costs == ExchangeCosts(fee_bps=0, fixed_fee_atomic=3)
    assert opened._feeds[BASE].by_symbol["USDC"].heartbeat_s == 60
    assert opened._feeds[BASE].sequencer is None


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("chainlink://host.example", "write feeds as"),
        ("chain:", "write feeds as"),
        ("chainlink:?USDC=1", "no parameter USDC"),
        ("chainlink:?spread_bps=x", "spread_bps must be a whole number"),
        ("chainlink:?spread_bps=10001", "spread_bps must be at most 10000"),
    ],
)
def test_a_url_that_is_wrong_is_refused(market: Market, url: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        open_url(url, chains=as_chains({BASE: market.base}))


def test_feeds_without_a_chain_are_refused(market: Market) -> None:
    for chains in ({}, {77: market.base}, {BASE: object()}):
        with pytest.raises(ValueError, match="no chain with nodes in `chains` has a feed"):
            open_url("chainlink:", chains=as_chains(chains))
    with pytest.raises(OSError, match="nowhere"):
        open_url("chainlink:/nowhere.toml", chains={})
