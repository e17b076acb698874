"""What `payments doctor` says about the configured source of prices: each token's price, or why
there is none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from payments_core.networks import Asset
from payments_core.pricing.port import Pricing, PricingUnavailable
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
