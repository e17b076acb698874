"""What a payer sends with a client token."""

from __future__ import annotations

from typing import Literal

import attrs

from payments_core_http.v2.payments.bodies import Expiry, Methods, Reference, Sentence
from payments_core_http.v2.types import AccountId, Amount, AssetSymbol, ChainId, Url
from payments_core_http.wire.metadata import Metadata


@attrs.frozen(kw_only=True)
class OwnAccount:
    """The caller's own account, which is the only one that it may be paid to."""

    type: Literal["account"]
    accountId: AccountId


@attrs.frozen(kw_only=True)
class CreateOwnPayment:
    """A receive Payment to the caller's own account: a browser's token never spends a vault so."""

    intent: Literal["receive"] = "receive"
    amount: Amount
    destination: OwnAccount | None = None
    assetSymbol: AssetSymbol | None = None
    chainId: ChainId | None = None
    reference: Reference | None = None
    description: Sentence | None = None
    expiresInSeconds: Expiry | None = None
    allowedMethods: Methods | None = None
    successUrl: Url | None = None
    cancelUrl: Url | None = None
    metadata: Metadata | None = None
