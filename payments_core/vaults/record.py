"""Vaults, their policies and their balances as they are stored (contract §5)."""

from __future__ import annotations

from typing import ClassVar, Literal

import attrs

from payments_core.clock import Instant
from payments_core.money import ZERO, Atomic, Money, atomic
from payments_core.storage.records import Collection, Index, Record

VaultStatus = Literal["counterfactual", "deployed"]
PolicyStatus = Literal["active", "paused"]


@attrs.frozen(kw_only=True)
class Vault(Record):
    """An account's vault on one chain; on all EVM chains it has the same address."""

    collection: ClassVar[Collection] = Collection(
        "vaults",
        columns={"account_id": str, "chain_id": int},
        indexes=(Index("by_account", key=("account_id",), order=("chain_id",)),),
    )

    account_id: str
    chain_id: int
    address: str
    status: VaultStatus = "counterfactual"
    policy_id: str
    created_at: Instant


@attrs.frozen(kw_only=True)
class Policy(Record):
    """What a vault may be used for. Every authorization records the version it passed."""

    collection: ClassVar[Collection] = Collection("policies", columns={"vault_id": str})

    vault_id: str
    policy_version: int = 1
    status: PolicyStatus = "active"
    created_at: Instant
    updated_at: Instant


@attrs.frozen(kw_only=True)
class VaultBalance(Record):
    """What a vault holds of an asset at a final height, and what is reserved of it.

    The id is `<vault id>/<symbol>`. Authorizations commit against this record's version: two of
    them can never reserve the same funds.
    """

    collection: ClassVar[Collection] = Collection("vault_balances")

    asset_id: str
    total: Atomic = attrs.field(default=ZERO, converter=atomic)
    height: int = -1
    reserved: Atomic = attrs.field(default=ZERO, converter=atomic)

    @property
    def available(self) -> Money:
        """What may still be reserved; never below zero."""
        return Money(max(0, self.total - self.reserved), self.asset_id)


def balance_id(vault_id: str, symbol: str) -> str:
    """The id of a vault's balance record for an asset."""
    return f"{vault_id}/{symbol}"
