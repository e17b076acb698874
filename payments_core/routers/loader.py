"""Opening a router by its URL: adapters are found by the entry-point group below.

This distribution contains no adapter; the sandbox simulates a router. An adapter's `open_url` is
called with the URL, and returns a Router.
"""

from __future__ import annotations

from payments_core.adapters import load_adapter, require_port, scheme_of
from payments_core.routers.port import Router

GROUP = "payments_core.routers"


def open_router(url: str) -> Router:
    """The router that a URL names.

    Raises UnknownAdapter for a scheme that no adapter serves, ValueError if the adapter opens no
    router, and the adapter's own errors.
    """
    scheme = scheme_of(url)
    opened: Router = load_adapter(GROUP, scheme, "router")(url)
    require_port(opened, Router, scheme, "router")
    return opened
