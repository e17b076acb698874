"""Opening a KYC provider by its URL: adapters are found by the entry-point group below.

None comes with this distribution. An adapter's `open_url` is called with the URL, and returns a
KycProvider.
"""

from __future__ import annotations

from collections.abc import Callable

from payments_core.adapters import load_adapter, scheme_of
from payments_core.kyc.port import KycProvider

GROUP = "payments_core.kyc"


def open_kyc(url: str) -> KycProvider:
    """The provider that a URL names.

    Raises UnknownAdapter for a scheme that no adapter serves, and what the adapter raises.
    """
    open_url: Callable[[str], KycProvider] = load_adapter(GROUP, scheme_of(url), "KYC provider")
    return open_url(url)
