"""What a payer sends with a client token."""

from __future__ import annotations

from typing import Literal

from payments_core.validation.fields import (
    AccountId,
    Amount,
    AssetSymbol,
    ChainId,
    ExpiryInSeconds,
    Reference,
    Sentence,
    Url,
)
from payments_core.validation.metadata import Metadata
from payments_core_http.v2.payments.bodies import Methods
from payments_core_http.wire.classes import frozen_body


@frozen_body
class OwnAccount:
    """The caller's own account, the only one to which it may be paid."""

    type: Literal["account"]
    accountId: AccountId


@frozen_body
class CreateOwnPayment:
    """A receive Payment to the caller's own account: a browser's token cannot spend from a vault.

    `metadata` must be null or absent: only the partner's backend sets it.
    """

    intent: Literal["receive"] = "receive"
    amount: Amount
    destination: OwnAccount | None = None
    assetSymbol: AssetSymbol | None = None
    chainId: ChainId | None = None
    reference: Reference | None = None
    description: Sentence | None = None
    expiresInSeconds: ExpiryInSeconds | None = None
    allowedMethods: Methods | None = None
    successUrl: Url | None = None
    cancelUrl: Url | None = None
    metadata: Metadata | None = None
