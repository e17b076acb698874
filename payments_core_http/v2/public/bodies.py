"""What a payer's browser sends with a Payment's client secret."""

from __future__ import annotations

import attrs

from payments_core.payment_settings.record import PaymentMethod
from payments_core.validation.fields import Address, AssetSymbol, ChainId, TransactionHash


@attrs.frozen(kw_only=True)
class CreatePublicOption:
    """A way to pay without an account; `payerAddress` is the wallet that will send."""

    providerCode: PaymentMethod
    chainId: ChainId | None = None
    assetSymbol: AssetSymbol | None = None
    payerAddress: Address | None = None


@attrs.frozen(kw_only=True)
class SubmitTransaction:
    """A transaction that the payer says to have sent: a hint where to look."""

    transactionHash: TransactionHash
    chainId: ChainId
