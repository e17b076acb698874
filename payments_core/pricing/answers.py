"""Answers of a source of prices, whose types nobody checks: none that cannot be right is used."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from decimal import Decimal

from payments_core.money import MAX_ATOMIC
from payments_core.networks import Asset
from payments_core.pricing.port import (
    Estimate,
    PricesCurrencies,
    Pricing,
    PricingUnavailable,
)

MAX_MAGNITUDE = 30
"""Of a price, as a power of ten, above and below one: beyond it, arithmetic would take for ever."""

MAX_PLACES = 60
"""After the decimal point of a price."""

_log = logging.getLogger(__name__)


def ask_usd_prices(pricing: Pricing, assets: Sequence[Asset]) -> Mapping[str, Decimal]:
    """See Pricing. An answer that cannot be right raises PricingUnavailable, too."""
    return _take_prices(pricing.usd_prices(assets), [asset.id for asset in assets])


def ask_usd_rates(pricing: PricesCurrencies, currencies: Sequence[str]) -> Mapping[str, Decimal]:
    """See PricesCurrencies. An answer that cannot be right raises PricingUnavailable, too."""
    return _take_prices(pricing.usd_rates(currencies), currencies)


def ask_estimate(
    pricing: Pricing, source: Asset, destination: Asset, amount_atomic: int
) -> Estimate:
    """See Pricing. An answer that cannot be right raises PricingUnavailable, too."""
    answer: object = pricing.estimate(source, destination, amount_atomic)
    if (
        isinstance(answer, Estimate)
        and _is_price(answer.rate)
        and all(map(_is_count, (answer.fee_atomic, answer.slippage_bps, answer.time_s)))
        and answer.slippage_bps <= 10_000
    ):
        return answer
    raise _unusable("estimate")


def _take_prices(answer: object, names: Sequence[str]) -> Mapping[str, Decimal]:
    """Those that were asked for."""
    if not isinstance(answer, Mapping):
        raise _unusable("prices")
    found = {name: answer[name] for name in names if name in answer}
    if not all(map(_is_price, found.values())):
        raise _unusable("prices")
    return found


def _is_price(value: object) -> bool:
    if not isinstance(value, Decimal) or not value.is_finite() or value <= 0:
        return False
    exponent = value.as_tuple().exponent
    return abs(value.adjusted()) <= MAX_MAGNITUDE and int(exponent) >= -MAX_PLACES


def _is_count(value: object) -> bool:
    return type(value) is int and 0 <= value <= MAX_ATOMIC


def _unusable(what: str) -> PricingUnavailable:
    _log.error("ALARM: the %s of the source of prices cannot be used", what)
    return PricingUnavailable("the answer cannot be used")
