"""The pricing suite: the checks for a source of prices before quotes depend on it.

With pytest, a few lines make it run::

    class TestMyPrices(PricingConformance):
        pairs = (
            (shipped_networks().find_asset(8453, "USDC"), shipped_networks().find_asset(1, "USDT")),
        )

        def open(self):
            return my_package.open_url("my-prices://key@host.example")

A source that reads the world outside declares more: `can_fail`, `can_go_stale`, `can_lie` and
`can_move`, each with its hook in `Harness`. Without these, nobody has checked that a stale source
makes quotes unavailable instead of wrong. One that knows currencies declares
`can_price_currencies`.

Any other runner calls each `test_...` method of an instance; a check of what the adapter does not
declare raises `unittest.SkipTest`.
"""

from payments_core.conformance.pricing.checks import PricingChecks
from payments_core.conformance.pricing.harness import Harness

__all__ = ["Harness", "PricingConformance"]


class PricingConformance(PricingChecks):
    """Every check of the pricing port; override the hooks and declare what the adapter can do."""
