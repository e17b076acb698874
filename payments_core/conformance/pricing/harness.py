"""The hooks of an adapter's suite class, and the shared parts of the checks."""

from __future__ import annotations

import unittest
from decimal import Decimal

from payments_core.networks import Asset, shipped_networks
from payments_core.pricing.port import Pricing

USDC_ON_BASE, USDC_ON_POLYGON = (
    shipped_networks().find_asset(8453, "USDC"),
    shipped_networks().find_asset(137, "USDC"),
)
UNKNOWN = Asset(8453, "NOTHING", "0x000000000000000000000000000000000000dEaD", 6)


class Harness:
    """Override the hooks, and declare what the adapter can do.

    A check of something undeclared is skipped, and the skip is reported.
    """

    pairs: tuple[tuple[Asset, Asset], ...] = ((USDC_ON_BASE, USDC_ON_POLYGON),)
    """Different assets that the source has prices for."""

    amount_atomic: int = 25_000_000
    """An amount of each pair's first asset that the adapter estimates."""

    unknown: Asset = UNKNOWN
    """An asset that the source has no price for."""

    can_fail: bool = False
    """`fail` and `restore` work."""

    can_go_stale: bool = False
    """`go_stale` and `restore` work."""

    can_lie: bool = False
    """`lie` and `restore` work."""

    can_move: bool = False
    """`move` works, and the first pair is of two tokens, not of one on two chains."""

    can_price_currencies: bool = False
    """The source is a `PricesCurrencies`, and `fail`, `go_stale` and `lie` hold for its rates,
    too."""

    currencies: tuple[str, ...] = ("EUR",)
    """Currencies (ISO 4217) that the source has rates for."""

    unknown_currency: str = "XTS"
    """A currency that the source has no rate for."""

    def open(self) -> Pricing:
        """A handle to the source, as another process would have it."""
        raise NotImplementedError  # the adapter's own test class says how

    def fail(self) -> None:
        """Let the source stop answering."""
        raise NotImplementedError  # the adapter's own test class says how

    def go_stale(self) -> None:
        """Let all that the source knows be older than the adapter allows, without a failure."""
        raise NotImplementedError  # the adapter's own test class says how

    def lie(self) -> None:
        """Let what the source reports be impossible, such as a price of zero."""
        raise NotImplementedError  # the adapter's own test class says how

    def restore(self) -> None:
        """Undo `fail`, `go_stale` and `lie`."""
        raise NotImplementedError  # the adapter's own test class says how

    def move(self, asset: Asset, usd: Decimal) -> None:
        """Let the market have another price of an asset; what is cached of the old one expires."""
        raise NotImplementedError  # the adapter's own test class says how

    def setup_method(self) -> None:
        """Before each check."""

    def teardown_method(self) -> None:
        """After each check."""

    def require_capability(self, capability: str) -> None:
        """Skip the check unless the adapter declares the capability."""
        if not getattr(self, capability):
            raise unittest.SkipTest(f"the adapter does not declare `{capability}`")
