"""What a payer sends with a client token."""

from __future__ import annotations

from typing import Annotated, Literal

import attrs
from msgspec import Meta

from payments_core_http.metadata import Metadata
from payments_core_http.v2.bodies.payments import Expiry, Methods, Reference, Sentence
from payments_core_http.v2.bodies.types import AccountId, Amount, AssetSymbol, ChainId, Url


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


@attrs.frozen(kw_only=True)
class CreateOption:
    """An offer to pay from the caller's own vault, in the Payment's asset."""

    providerCode: Literal["vault"] = "vault"
    chainId: ChainId | None = None
    assetSymbol: AssetSymbol | None = None


@attrs.frozen(kw_only=True)
class Proof:
    """The payer's approval, given to the partner's app."""

    type: Literal["managed_authorization"]
    authorization: Literal["approved"]


@attrs.frozen(kw_only=True)
class Authorize:
    """The one-time action that authorizes exactly one transfer."""

    actionId: Annotated[str, Meta(min_length=1, max_length=128)] = attrs.field(repr=False)
    proof: Proof
    metadata: Metadata | None = None
