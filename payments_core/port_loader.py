"""Opening a limiter or a provider by its URL: adapters are found by entry points.

An adapter's `open_url` is called with the URL, and returns an object of the port. Storages and
chains take more than a URL: `storage_loader.py` and `chains/loader.py` open them.
"""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import attrs

from payments_core.accounts.verification.port import KycProvider
from payments_core.adapters import load_adapter, require_port, scheme_of
from payments_core.banks.port import Bank
from payments_core.limiters.port import Limiter
from payments_core.pricing.port import Pricing
from payments_core.routers.port import Router

P = TypeVar("P")


@attrs.frozen
class Opener(Generic[P]):
    """Opens the adapters of one port; `group` is that of their entry points."""

    group: str
    port: type[Any]
    what: str

    def __call__(self, url: str) -> P:
        """The adapter that a URL names.

        Raises UnknownAdapter for a scheme that no adapter serves, ImportError if an adapter's
        driver is not installed, ValueError if the adapter cannot read the URL or opens nothing of
        the port, and the adapter's own errors.
        """
        scheme = scheme_of(url)
        opened: P = load_adapter(self.group, scheme, self.what)(url)
        require_port(opened, self.port, scheme, self.what)
        return opened


open_limiter = Opener[Limiter]("payments_core.limiters", Limiter, "limiter")
"""`memory:`, or a Redis such as `redis://localhost/0`."""
open_pricing = Opener[Pricing]("payments_core.pricing", Pricing, "source of prices")
"""`table:`, the prices of which are in the URL (`pricing/table.py`)."""
open_kyc = Opener[KycProvider]("payments_core.kyc", KycProvider, "KYC provider")
"""No adapter comes with this distribution."""
open_bank = Opener[Bank]("payments_core.banks", Bank, "bank")
"""No adapter comes with this distribution."""
open_router = Opener[Router]("payments_core.routers", Router, "router")
"""No adapter comes with this distribution; the sandbox simulates a router."""

OPENERS = (open_limiter, open_pricing, open_kyc, open_bank, open_router)
