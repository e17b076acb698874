"""Opening a source of prices by its URL: adapters are found by the entry-point group below.

`table:` comes with this distribution (`table.py`). An adapter's `open_url` is called with the URL,
and returns a Pricing.
"""

from __future__ import annotations

from payments_core.adapters import load_adapter, require_port, scheme_of
from payments_core.pricing.port import Pricing

GROUP = "payments_core.pricing"


def open_pricing(url: str) -> Pricing:
    """The source of prices that a URL names.

    Raises UnknownAdapter for a scheme that no adapter serves, ValueError if the adapter opens no
    source of prices, and the adapter's own errors.
    """
    scheme = scheme_of(url)
    opened: Pricing = load_adapter(GROUP, scheme, "source of prices")(url)
    require_port(opened, Pricing, scheme, "source of prices")
    return opened
