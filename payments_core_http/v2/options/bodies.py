"""What a payer sends to pay from its vault."""

from __future__ import annotations

from typing import Literal

import attrs

from payments_core.validation.fields import ActionId, AssetSymbol, ChainId
from payments_core.validation.metadata import Metadata
from payments_core_http.wire.classes import frozen_body


@frozen_body
class CreateOption:
    """An offer to pay from the caller's own vault, in the Payment's asset."""

    providerCode: Literal["vault"] = "vault"
    chainId: ChainId | None = None
    assetSymbol: AssetSymbol | None = None


@frozen_body
class Proof:
    """The payer's approval, given to the partner's app."""

    type: Literal["managed_authorization"]
    authorization: Literal["approved"]
    """The payer's authorization."""


@frozen_body
class Authorize:
    """The one-time action that authorizes exactly one transfer."""

    actionId: ActionId = attrs.field(repr=False)
    proof: Proof
    """The proof that the payer approves."""
    metadata: Metadata | None = None
