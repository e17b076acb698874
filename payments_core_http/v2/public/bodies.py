"""What a payer's browser sends with a Payment's client secret."""

from __future__ import annotations

from payments_core.payment_settings.record import PaymentMethod
from payments_core.validation.fields import Address, AssetSymbol, ChainId, TransactionHash
from payments_core_http.wire.classes import frozen_body


@frozen_body
class CreatePublicOption:
    """A way to pay without an account.

    `payerAddress` is the wallet that will send, for `direct`. For `routing`, `chainId` and
    `assetSymbol` name what the payer sends, and `refundAddress` is the payer's address on that
    chain, which gets what cannot be delivered; all three are required. `hosted_onramp` takes none
    of these.
    """

    providerCode: PaymentMethod
    chainId: ChainId | None = None
    assetSymbol: AssetSymbol | None = None
    payerAddress: Address | None = None
    refundAddress: Address | None = None
    """Where a router returns what it cannot deliver."""


@frozen_body
class SubmitTransaction:
    """A transaction that the payer says it has sent; the service checks it."""

    transactionHash: TransactionHash
    """The hash of the transaction on the chain."""
    chainId: ChainId
