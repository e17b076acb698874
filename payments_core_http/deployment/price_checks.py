"""What `payments doctor` says about the configured source of prices: each price, or why there is
none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from payments_core.networks import Asset
from payments_core.payment_settings.currencies import list_currencies
from payments_core.pricing.port import PricesCurrencies, Pricing, PricingUnavailable
from payments_core_http.deployment.findings import Finding


def check_prices(pricing: Pricing, tokens: Sequence[Asset]) -> Iterator[Finding]:
    """One finding for each token; none is a fault, since nothing but quotes needs a price."""
    for token in tokens:
        try:
            price = pricing.usd_prices((token,)).get(token.id)
        except PricingUnavailable as error:
            says = f"{token.id} has no price now: {error}"
        else:
            says = f"{token.id} has no price: the source does not know it"
            if price is not None:
                yield Finding("prices", "ok", f"{token.id} is at {price} US dollars")
                continue
        yield Finding("prices", "warning", says, "quotes of it are refused: docs/how-to/prices.md")


def check_rates(pricing: Pricing) -> Iterator[Finding]:
    """One finding for each currency that the source knows; none where it knows no currency."""
    if not isinstance(pricing, PricesCurrencies):
        return
    for code in sorted(list_currencies()):
        try:
            rate = pricing.usd_rates((code,)).get(code)
        except PricingUnavailable as error:
            fix = "checkout pages show US dollars: docs/how-to/prices.md"
            yield Finding("prices", "warning", f"{code} has no rate now: {error}", fix)
        else:
            if rate is not None:
                yield Finding("prices", "ok", f"{code} is at {rate} US dollars")
