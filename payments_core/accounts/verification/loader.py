"""Opening a KYC provider by its URL: adapters are found by the entry-point group below.

This distribution contains no adapter. An adapter's `open_url` is called with the URL, and returns a
KycProvider.
"""

from __future__ import annotations

from payments_core.accounts.verification.port import KycProvider
from payments_core.adapters import load_adapter, require_port, scheme_of

GROUP = "payments_core.kyc"


def open_kyc(url: str) -> KycProvider:
    """The provider that a URL names.

    Raises UnknownAdapter for a scheme that no adapter serves, ValueError if the adapter opens no
    provider, and the adapter's own errors.
    """
    scheme = scheme_of(url)
    opened: KycProvider = load_adapter(GROUP, scheme, "KYC provider")(url)
    require_port(opened, KycProvider, scheme, "KYC provider")
    return opened
