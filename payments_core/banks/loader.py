"""Opening a bank by its URL: adapters are found by the entry-point group below.

This distribution contains no bank adapter. An adapter's `open_url` is called with the URL, and
returns a Bank.
"""

from __future__ import annotations

from payments_core.adapters import load_adapter, require_port, scheme_of
from payments_core.banks.port import Bank

GROUP = "payments_core.banks"


def open_bank(url: str) -> Bank:
    """The bank that a URL names.

    Raises UnknownAdapter for a scheme that no adapter serves, ValueError if the adapter opens no
    bank, and the adapter's own errors.
    """
    scheme = scheme_of(url)
    opened: Bank = load_adapter(GROUP, scheme, "bank")(url)
    require_port(opened, Bank, scheme, "bank")
    return opened
