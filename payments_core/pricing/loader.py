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

    Raises UnknownAdapter for a scheme that no adapter serves, ValueError where what it opens is no
    source of prices, and what the adapter raises.
    """
    scheme = scheme_of(url)
    opened: Pricing = load_adapter(GROUP, scheme, "source of prices")(url)
    require_port(opened, Pricing, scheme, "source of prices")
    return opened
