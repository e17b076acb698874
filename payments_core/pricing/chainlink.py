"""Prices of Chainlink's feeds, read from the chains that the deployment serves, by their nodes.

As a URL: `chainlink:?fee_bps=5&slippage_bps=30`, or with an operator's own feeds
`chainlink:/etc/payments/feeds.toml`. `spread_bps` is how far the prices of one token on two chains
may differ, by default 100; the other parameters are the fields of `ExchangeCosts`.

A token has the price of the feed on its own chain. An answer that `rounds.py` refuses is no price:
the call raises PricingUnavailable, and so it does if nodes are silent or too few agree. Two chains
are two witnesses: if their feeds of one token differ too much, one of them lies, and none counts.

A currency has the rate of its feeds on all chains that have one, and these must agree, too. A feed
that is refused takes no rate as long as another one is sound: a currency is the same on each chain.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from decimal import Decimal
from functools import partial
from pathlib import Path

from payments_core.chains.port import Chain, ChainUnavailable, ReadsContracts
from payments_core.chains.shared_read import SharedRead
from payments_core.clock import Clock, SystemClock
from payments_core.networks import Asset
from payments_core.pricing.costs import (
    ExchangeCosts,
    divide_prices,
    parse_costs,
    parse_count,
    parse_parameters,
)
from payments_core.pricing.feeds import ChainFeeds, Feed, read_feeds, shipped_feeds
from payments_core.pricing.port import Estimate, NotPriced, PricingUnavailable
from payments_core.pricing.rounds import (
    DECIMALS,
    LATEST_ROUND_DATA,
    FeedRefused,
    judge_price,
    require_sequencer,
)

SHARED_FOR_S = 5.0
"""How long callers share what was read of a chain: a quote asks twice, and must get one answer; a
flood of quotes costs a chain's nodes one query. Feeds report when a price has moved by a quarter of
a percent or so, in blocks of 2 to 12 seconds, so that this makes no price notably older."""

SPREAD_BPS = 100
"""Two honest feeds are each up to about 0.3 % behind the market, in different directions."""

Answers = Mapping[str, Decimal | FeedRefused]
"""The price of each feed, or why there is none, by its symbol."""

_log = logging.getLogger(__name__)


class ChainlinkPricing:
    """Reads feeds. Threads may share it."""

    def __init__(
        self,
        chains: Mapping[int, Chain],
        feeds: Mapping[int, ChainFeeds],
        costs: ExchangeCosts | None = None,
        *,
        spread_bps: int = SPREAD_BPS,
        clock: Clock | None = None,
        shared_for_s: float = SHARED_FOR_S,
    ) -> None:
        """Raises ValueError if no chain of these has a feed."""
        self._costs = costs or ExchangeCosts()
        self._spread_bps = spread_bps
        self._clock = clock or SystemClock()
        self._feeds: dict[int, ChainFeeds] = {}
        self._reads: dict[int, SharedRead[Answers]] = {}
        self._rates: dict[str, dict[int, SharedRead[Answers]]] = {}
        for number in chains.keys() & feeds.keys():
            chain = chains[number]
            if isinstance(chain, ReadsContracts):
                self._feeds[number] = feeds[number]
                read = partial(self._read_feeds, number, chain)
                self._reads[number] = SharedRead(
                    partial(read, feeds[number].by_symbol), shared_for_s
                )
                for code, feed in feeds[number].currencies.items():
                    # Apart from the tokens: a quote pays for no feed that it does not need.
                    rate = SharedRead(partial(read, {code: feed}), shared_for_s)
                    self._rates.setdefault(code, {})[number] = rate
        if not self._reads:
            raise ValueError("no chain with nodes in `chains` has a feed")

    def usd_prices(self, assets: Sequence[Asset]) -> Mapping[str, Decimal]:
        """See Pricing. The feeds of all chains must agree that are read for it."""
        prices: dict[str, Decimal] = {}
        by_symbol: dict[str, list[Decimal]] = {}
        for asset in assets:
            if self._has_feed(asset) and asset.id not in prices:
                read = self._reads[asset.chain_id]
                price = prices[asset.id] = _take_price(read, asset.chain_id, asset.symbol)
                by_symbol.setdefault(asset.symbol, []).append(price)
        for symbol, found in by_symbol.items():
            self._require_agreement(symbol, found)
        return prices

    def usd_rates(self, currencies: Sequence[str]) -> Mapping[str, Decimal]:
        """See PricesCurrencies: the middle one of the sound feeds of all chains, which agree."""
        rates: dict[str, Decimal] = {}
        for code in currencies:
            found: list[Decimal] = []
            refused: PricingUnavailable | None = None
            for number, read in self._rates.get(code, {}).items():
                try:
                    found.append(_take_price(read, number, code))
                except PricingUnavailable as error:
                    refused = error
            if found:
                self._require_agreement(code, found)
                rates[code] = sorted(found)[len(found) // 2]
            elif refused is not None:
                raise refused
        return rates

    def estimate(self, source: Asset, destination: Asset, amount_atomic: int) -> Estimate:
        """See Pricing. A token is worth itself on another chain: the rate is 1, less the fees."""
        for asset in (source, destination):
            if not self._has_feed(asset):
                raise NotPriced(asset)
        prices = self.usd_prices((source, destination))
        if source.id == destination.id:
            return self._costs.estimate_transfer()
        rate = (
            Decimal(1)
            if source.symbol == destination.symbol
            else divide_prices(prices[source.id], prices[destination.id])
        )
        return self._costs.estimate_exchange(source, destination, amount_atomic, rate)

    def _has_feed(self, asset: Asset) -> bool:
        on_chain = self._feeds.get(asset.chain_id)
        return on_chain is not None and asset.symbol in on_chain.by_symbol

    def _require_agreement(self, symbol: str, found: Sequence[Decimal]) -> None:
        """Raise PricingUnavailable if the feeds of several chains differ too much."""
        lowest, highest = min(found), max(found)
        if (highest - lowest) * 10_000 > lowest * self._spread_bps:
            raise PricingUnavailable(
                f"the feeds of {symbol} differ: {lowest} to {highest} US dollars"
            )

    def _read_feeds(self, number: int, chain: ReadsContracts, feeds: Mapping[str, Feed]) -> Answers:
        """Feeds of one chain, in one query. Raises ChainUnavailable."""
        sequencer = self._feeds[number].sequencer
        calls = [
            (feed.address, calldata)
            for feed in feeds.values()
            for calldata in (LATEST_ROUND_DATA, DECIMALS)
        ]
        if sequencer is not None:
            calls.append((sequencer, LATEST_ROUND_DATA))
        answers = chain.read_contracts(calls)
        now = self._clock.real_now()
        prices: dict[str, Decimal | FeedRefused] = {}
        for place, feed in enumerate(feeds.values()):
            try:
                if sequencer is not None:
                    require_sequencer(answers[-1], now)
                found, decimals = answers[2 * place : 2 * place + 2]
                prices[feed.symbol] = judge_price(feed, found, decimals, now)
            except FeedRefused as refused:
                _log.warning("chain %d: no price of %s: %s", number, feed.symbol, refused)
                prices[feed.symbol] = refused
        return prices


def _take_price(read: SharedRead[Answers], number: int, symbol: str) -> Decimal:
    """The price of a feed on a chain. Raises PricingUnavailable."""
    try:
        found = read.get()[symbol]
    except ChainUnavailable as error:
        raise PricingUnavailable(f"chain {number} does not answer") from error
    if isinstance(found, FeedRefused):
        raise PricingUnavailable(f"no price of {number}/{symbol}: {found}")
    return found


def open_url(url: str, *, chains: Mapping[int, Chain]) -> ChainlinkPricing:
    """The feeds of the served chains. Raises OSError, and ValueError, which names what is wrong."""
    head, _, query = url.partition("?")
    scheme, _, path = head.partition(":")
    if scheme != "chainlink" or path.startswith("//"):
        raise ValueError("write feeds as chainlink: or chainlink:/path/feeds.toml")
    given = parse_parameters(query)
    spread_bps = parse_count("spread_bps", given.pop("spread_bps", str(SPREAD_BPS)))
    feeds = read_feeds(Path(path)) if path else shipped_feeds()
    return ChainlinkPricing(chains, feeds, parse_costs(given), spread_bps=spread_bps)
