"""The price of a token for a page that shows about what an amount is worth.

Nothing depends on it, so it holds up no page: the source is asked in a thread of its own, a page
waits for the answer for a moment, and shows no value if there is none.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from decimal import Decimal

import attrs

from payments_core.fork_safety import register_fork_reset
from payments_core.networks import Asset
from payments_core.pricing.answers import ask_usd_prices
from payments_core.pricing.port import Pricing, PricingUnavailable
from payments_core.waiting import NO_WAITS, Waits

WAIT_S = 0.5
"""How long a page waits for the answer of a source."""

ASK_EVERY_S = 20.0
"""How often a source is asked, at most, for each token: one thread for all pages."""

STALE_S = 60.0
"""A price that is older is not shown."""

_log = logging.getLogger(__name__)


@attrs.define
class _Known:
    """What is known of one token: the newest price and when it was asked for."""

    price: Decimal | None = None
    priced_at: float = 0.0
    asked_at: float | None = None
    asking: threading.Event | None = None
    """Set when the thread that asks has an answer; None while no thread asks."""


class ShownPrices:
    """Prices in US dollars that are recent, or none. Threads share it."""

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

    def find(self, mode: str, asset: Asset) -> Decimal | None:
        """The price of one whole token; None if there is none that is recent."""
        pricing = self._pricing.get(mode)
        if pricing is None:
            return None
        key, now = (mode, asset.id), self._clock()
        with self._lock:
            known = self._known.setdefault(key, _Known())
            if known.asking is None and not _is_recent(known.asked_at, now, ASK_EVERY_S):
                known.asked_at, known.asking = now, threading.Event()
                threading.Thread(
                    target=self._ask, args=(pricing, asset, known), name="price", daemon=True
                ).start()
            asking = known.asking if _is_recent(known.asked_at, now, self._wait_s) else None
        if asking is not None:
            with self._waits.announce():
                asking.wait(self._wait_s)
        with self._lock:
            return known.price if _is_recent(known.priced_at, self._clock(), STALE_S) else None

    def _ask(self, pricing: Pricing, asset: Asset, known: _Known) -> None:
        began, price = self._clock(), None
        try:
            price = ask_usd_prices(pricing, (asset,)).get(asset.id)
        except PricingUnavailable as error:
            _log.debug("no price of %s to show: %s", asset.id, error)
        except Exception:
            _log.exception("the source of prices fails for %s", asset.id)
        with self._lock:
            done, known.asking = known.asking, None
            known.price, known.priced_at = price, began
        if done is not None:
            done.set()


def _is_recent(at: float | None, now: float, within_s: float) -> bool:
    return at is not None and now - at < within_s
