"""The price of a token for a page that shows about what an amount is worth, in any currency.

Nothing depends on it, so it holds up no page: the source is asked in a thread of its own, a page
waits for the answer for a moment, and shows no value if there is none.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from decimal import Decimal
from fractions import Fraction
from functools import partial

import attrs

from payments_core.fork_safety import register_fork_reset
from payments_core.networks import Asset
from payments_core.pricing.answers import ask_usd_prices, ask_usd_rates
from payments_core.pricing.port import PricesCurrencies, Pricing, PricingUnavailable
from payments_core.waiting import NO_WAITS, Waits

WAIT_S = 0.5
"""How long a page waits for the answer of a source."""

ASK_EVERY_S = 20.0
"""How often a source is asked, at most, for each token and currency: one thread for all pages."""

STALE_S = 60.0
"""A price that is older is not shown."""

_USD = "USD"
"""The currency of a source's prices."""

_Ask = Callable[[], Mapping[str, Decimal]]

_log = logging.getLogger(__name__)


@attrs.frozen
class ShownPrice:
    """What one whole token is worth in a currency (ISO 4217): exactly as its source says."""

    per_token: Fraction
    currency: str


@attrs.define
class _Known:
    """What is known of one token or currency: the newest price and when it was asked for."""

    price: Decimal | None = None
    priced_at: float = 0.0
    asked_at: float | None = None
    asking: threading.Event | None = None
    """Set when the thread that asks has an answer; None while no thread asks."""


class ShownPrices:
    """Prices that are recent, or none. Threads share it."""

    def __init__(
        self,
        pricing: Mapping[str, Pricing],
        waits: Waits = NO_WAITS,
        *,
        clock: Callable[[], float] = time.monotonic,
        wait_s: float = WAIT_S,
    ) -> None:
        """`pricing` has the source of prices of each mode that has one."""
        self._pricing = pricing
        self._waits = waits
        self._clock = clock
        self._wait_s = wait_s
        self._lock = threading.Lock()
        self._known: dict[tuple[str, str], _Known] = {}
        register_fork_reset(self)

    def reset_after_fork(self) -> None:
        """Start with a free lock, and ask again: no thread of the child is asking."""
        self._lock, self._known = threading.Lock(), {}

    def find(self, mode: str, asset: Asset, currency: str | None = None) -> ShownPrice | None:
        """The price of one whole token in the currency, or in US dollars if no rate of the currency
        is recent; None if no price of the token is."""
        pricing = self._pricing.get(mode)
        if pricing is None:
            return None
        currency = currency or _USD
        asks: dict[str, _Ask] = {asset.id: partial(ask_usd_prices, pricing, (asset,))}
        if currency != _USD and isinstance(pricing, PricesCurrencies):
            asks[currency] = partial(ask_usd_rates, pricing, (currency,))
        found = self._find_recent(mode, asks)
        price, rate = found[asset.id], found.get(currency)
        if price is None:
            return None
        if rate is None:
            return ShownPrice(Fraction(price), _USD)
        return ShownPrice(Fraction(price) / Fraction(rate), currency)

    def _find_recent(self, mode: str, asks: Mapping[str, _Ask]) -> Mapping[str, Decimal | None]:
        """What is known of each of these, which are asked at once."""
        now = self._clock()
        with self._lock:
            found = {name: self._start(mode, name, ask, now) for name, ask in asks.items()}
            asking = [
                known.asking
                for known in found.values()
                if known.asking is not None and _is_recent(known.asked_at, now, self._wait_s)
            ]
        for answered in asking:
            with self._waits.announce():
                answered.wait(now + self._wait_s - self._clock())
        with self._lock:
            now = self._clock()
            return {
                name: known.price if _is_recent(known.priced_at, now, STALE_S) else None
                for name, known in found.items()
            }

    def _start(self, mode: str, name: str, ask: _Ask, now: float) -> _Known:
        """Start a thread that asks, unless one does or has lately."""
        known = self._known.setdefault((mode, name), _Known())
        if known.asking is None and not _is_recent(known.asked_at, now, ASK_EVERY_S):
            known.asked_at, known.asking = now, threading.Event()
            threading.Thread(
                target=self._ask, args=(name, ask, known), name="price", daemon=True
            ).start()
        return known

    def _ask(self, name: str, ask: _Ask, known: _Known) -> None:
        began, price = self._clock(), None
        try:
            price = ask().get(name)
        except PricingUnavailable as error:
            _log.debug("no price of %s to show: %s", name, error)
        except Exception:
            _log.exception("the source of prices fails for %s", name)
        with self._lock:
            done, known.asking = known.asking, None
            known.price, known.priced_at = price, began
        if done is not None:
            done.set()


def _is_recent(at: float | None, now: float, within_s: float) -> bool:
    return at is not None and now - at < within_s
