"""The fields of a new on-ramp bank account, each with its rule, for the library and HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

import attrs

from payments_core.accounts.bank_accounts.fields import FieldRequirement
from payments_core.errors import FieldError
from payments_core.networks import Networks
from payments_core.validation.fields import Address, AssetSymbol, ChainId


@attrs.frozen(kw_only=True)
class NewOnrampDestination:
    """Where the stablecoins go: the account's vault on the chain, or a wallet's `address`."""

    type: Literal["vault", "wallet"]
    chain_id: ChainId
    asset_symbol: AssetSymbol
    address: Address | None = None


@attrs.frozen(kw_only=True)
class NewOnrampAccount:
    """An on-ramp bank account to make."""

    currency: Literal["usd"]
    destination: NewOnrampDestination


def find_onramp_faults(type: str, address: str | None) -> list[FieldError]:
    """The errors of a destination beyond the rule of each field."""
    if type == "wallet" and address is None:
        return [FieldError("destination.address", "is required for a wallet")]
    if type == "vault" and address is not None:
        return [FieldError("destination.address", "must be left out: the account's vault has one")]
    return []


def onramp_field_requirements(networks: Networks) -> Iterator[FieldRequirement]:
    """The fields of a new on-ramp bank account, for a partner's form."""
    yield FieldRequirement(name="currency", required=True, values=("usd",))
    yield FieldRequirement(name="destination.type", required=True, values=("vault", "wallet"))
    yield FieldRequirement(name="destination.chain_id", required=True, type="integer")
    yield FieldRequirement(
        name="destination.asset_symbol",
        required=True,
        values=tuple(sorted(networks.list_symbols())),
    )
    yield FieldRequirement(name="destination.address", required=False, min_length=1, max_length=128)
