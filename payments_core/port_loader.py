"""Opens a provider by its URL: adapters are found by entry points.

An adapter's `open_url` is called with the URL, and returns an object of the port. Storages and
chains take more than a URL: `storage_loader.py` and `chains/loader.py` open them. Prices take the
served chains too.
"""

from __future__ import annotations

from payments_core.accounts.verification.port import KycProvider
from payments_core.adapters import Opener
from payments_core.banks.port import Bank
from payments_core.hosted_onramps.port import HostedOnramp
from payments_core.limiters.loader import open_limiter
from payments_core.pricing.port import Pricing
from payments_core.routers.port import Router
from payments_core.screening.port import Screening

open_pricing = Opener[Pricing]("payments_core.pricing", Pricing, "source of prices")
"""`table:`, the prices of which are in the URL (`pricing/table.py`), and `chainlink:`, which reads
feeds (`pricing/chainlink.py`). Also takes `chains`, the served ones by their number."""
open_kyc = Opener[KycProvider]("payments_core.kyc", KycProvider, "KYC provider")
"""No adapter comes with this distribution."""
open_bank = Opener[Bank]("payments_core.banks", Bank, "bank")
"""No adapter comes with this distribution."""
open_router = Opener[Router]("payments_core.routers", Router, "router")
"""`cctp:` (`routers/cctp/opening.py`); the sandbox simulates a router. Also takes `chains`, the
served ones by their number, `storage`, and `networks`, the registry."""
open_onramp = Opener[HostedOnramp]("payments_core.onramps", HostedOnramp, "hosted on-ramp")
"""No adapter comes with this distribution; the sandbox simulates one."""
open_screening = Opener[Screening]("payments_core.screening", Screening, "screening provider")
"""No adapter comes with this distribution; the sandbox simulates a provider."""

OPENERS = (
    open_limiter,
    open_pricing,
    open_kyc,
    open_bank,
    open_router,
    open_onramp,
    open_screening,
)
