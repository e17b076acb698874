"""On-ramp bank accounts to add."""

from __future__ import annotations

from typing import Literal

from payments_core.errors import FieldError
from payments_core.onramps.fields import find_onramp_faults
from payments_core.validation.fields import Address, AssetSymbol, ChainId
from payments_core_http.wire.classes import frozen_body
from payments_core_http.wire.names import name_faults


@frozen_body
class OnrampDestination:
    """Where the stablecoins go: the account's vault on the chain, or a wallet's `address`."""

    type: Literal["vault", "wallet"]
    """Whether a vault or a wallet is credited."""
    chainId: ChainId
    assetSymbol: AssetSymbol
    address: Address | None = None
    """The wallet to credit; absent for a vault."""


@frozen_body
class AddOnrampAccount:
    """A reusable on-ramp; the bank assigns its number."""

    currency: Literal["usd"]
    destination: OnrampDestination

    def faults(self) -> list[FieldError]:
        """A wallet without an address, or a vault with one."""
        return name_faults(find_onramp_faults(self.destination.type, self.destination.address))
