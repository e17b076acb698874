"""Opening a limiter by its URL: adapters are found by the entry-point group below.

An adapter's `open_url` is called with the URL, and returns a Limiter.
"""

from __future__ import annotations

from payments_core.adapters import load_adapter, require_port, scheme_of
from payments_core.limiters.port import Limiter

GROUP = "payments_core.limiters"


def open_limiter(url: str) -> Limiter:
    """The limiter that a URL names: `memory:`, or a Redis such as `redis://localhost/0`.

    Raises UnknownAdapter for a scheme that no adapter serves, ImportError if an adapter's
    driver is not installed, and ValueError for a URL that the adapter cannot read, or if it
    opens no limiter.
    """
    scheme = scheme_of(url)
    opened: Limiter = load_adapter(GROUP, scheme, "limiter")(url)
    require_port(opened, Limiter, scheme, "limiter")
    return opened
