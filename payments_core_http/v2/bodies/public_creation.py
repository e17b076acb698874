"""What a stranger's browser may say of a Payment."""

from __future__ import annotations

import attrs

from payments_core_http.v2.bodies.payments import Reference, WalletDestination
from payments_core_http.v2.bodies.types import Amount, AssetSymbol, ChainId, Url


@attrs.frozen(kw_only=True)
class CreatePublicPayment:
    """A receive Payment to one of the wallets that the payment settings allow.

    Without `chainId` and `assetSymbol` it is USDC on chain 8453, or where the settings exclude
    that, the first of theirs. The URLs are under an allowed origin.
    """

    amount: Amount
    destination: WalletDestination
    assetSymbol: AssetSymbol | None = None
    chainId: ChainId | None = None
    reference: Reference | None = None
    successUrl: Url | None = None
    cancelUrl: Url | None = None
