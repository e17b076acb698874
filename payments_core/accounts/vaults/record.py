"""Vaults, their policies and their balances as they are stored (contract §5)."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar, Literal

import attrs

from payments_core.brief_repr import brief_repr
from payments_core.chains.port import Contract
from payments_core.clock import Instant
from payments_core.field_views import FieldView, instant_view
from payments_core.money import ZERO, Atomic, Money, atomic
from payments_core.storage.records import Collection, Document, Index, Record, Unique

VaultStatus = Literal["counterfactual", "deployed"]
PolicyStatus = Literal["active", "paused"]
DestinationType = Literal["wallet", "account"]


def _add_updated_at(document: Document) -> Document:
    return {**document, "updated_at": document["created_at"]}


@attrs.frozen(kw_only=True, slots=False)
class Vault(Record):
    """An account's vault on one chain; on all EVM chains it has the same address.

    Its first payment puts its code on the chain: it is `deployed` when that is final.

    >>> [vault] = [one for one in shop.vaults.list(eve.id).records if one.chain_id == 8453]
    >>> vault.address
    '0x...'
    """

    collection: ClassVar[Collection] = Collection(
        "vaults",
        columns={"account_id": str, "chain_id": int},
        indexes=(Index("by_account", key=("account_id",), order=("chain_id",)),),
        uniques=(Unique("account_chain", ("account_id", "chain_id")),),
        schema=3,
        upgrades={1: _add_updated_at},
    )

    account_id: str
    chain_id: int
    address: str
    status: VaultStatus = "counterfactual"
    policy_id: str
    created_at_ms: Instant
    updated_at_ms: Instant

    created_at: ClassVar[FieldView[datetime]] = instant_view("created_at_ms")
    updated_at: ClassVar[FieldView[datetime]] = instant_view("updated_at_ms")

    @property
    def contract(self) -> Contract:
        """The vault as the contract that pays."""
        return Contract("vault", self.account_id, self.address)


@attrs.frozen(kw_only=True)
class AllowedDestination:
    """A destination that a policy allows: an address, on one chain or on any, or an account."""

    __repr__ = brief_repr

    type: DestinationType
    address: str | None = None
    chain_id: int | None = None
    account_id: str | None = None


@attrs.frozen(kw_only=True)
class PolicyTerms:
    """The terms of a policy; None means no limit, and an empty list allows nothing.

    The limits are decimal texts in whole tokens, for each asset separately.

    >>> to_bob = AllowedDestination(type="account", account_id=bob.id)
    >>> terms = PolicyTerms(daily_limit="500.00", allowed_destinations=(to_bob,))
    >>> shop.vaults.replace_policy(eve.id, vault.id, terms).policy.policy_version
    2
    """

    __repr__ = brief_repr

    status: PolicyStatus = "active"
    per_payment_limit: str | None = None
    daily_limit: str | None = None
    allowed_chains: tuple[int, ...] | None = None
    allowed_assets: tuple[str, ...] | None = None
    allowed_destinations: tuple[AllowedDestination, ...] | None = None


@attrs.frozen(kw_only=True, slots=False)
class Policy(Record):
    """The policy of a vault. Every authorization records the version that it passed."""

    collection: ClassVar[Collection] = Collection("policies", columns={"vault_id": str}, schema=2)

    vault_id: str
    policy_version: int = 1
    status: PolicyStatus = "active"
    per_payment_limit: str | None = None
    daily_limit: str | None = None
    allowed_chains: tuple[int, ...] | None = None
    allowed_assets: tuple[str, ...] | None = None
    allowed_destinations: tuple[AllowedDestination, ...] | None = None
    created_at_ms: Instant
    updated_at_ms: Instant

    created_at: ClassVar[FieldView[datetime]] = instant_view("created_at_ms")
    updated_at: ClassVar[FieldView[datetime]] = instant_view("updated_at_ms")

    @property
    def terms(self) -> PolicyTerms:
        """The terms of the policy, without owner and times."""
        return PolicyTerms(
            **{field.name: getattr(self, field.name) for field in attrs.fields(PolicyTerms)}
        )


@attrs.frozen(kw_only=True, slots=False)
class PolicyVersion(Record):
    """The terms of one version of a policy. It is never changed.

    The id is `<policy id>/<version>`.
    """

    collection: ClassVar[Collection] = Collection("policy_versions", schema=2)

    terms: PolicyTerms
    created_at_ms: Instant

    created_at: ClassVar[FieldView[datetime]] = instant_view("created_at_ms")


@attrs.frozen(kw_only=True, slots=False)
class YieldSettings(Record):
    """Whether a vault's idle funds are to earn yield, and how. The id is the vault's."""

    collection: ClassVar[Collection] = Collection("yield_settings", schema=2)

    enabled: bool = False
    strategy: str | None = None
    created_at_ms: Instant
    updated_at_ms: Instant

    created_at: ClassVar[FieldView[datetime]] = instant_view("created_at_ms")
    updated_at: ClassVar[FieldView[datetime]] = instant_view("updated_at_ms")


@attrs.frozen(kw_only=True, slots=False)
class VaultBalance(Record):
    """A vault's balance of an asset at a final height, and the reserved amount.

    The id is `<vault id>/<symbol>`. Authorizations commit against this record's version: two of
    them can never reserve the same funds. `spent_atomic` is the amount counted towards the policy's
    daily limit on `spent_day`, a UTC day by its number since the epoch.
    """

    collection: ClassVar[Collection] = Collection("vault_balances", schema=2)

    asset_id: str
    total_atomic: Atomic = attrs.field(default=ZERO, converter=atomic)
    height: int = -1
    reserved_atomic: Atomic = attrs.field(default=ZERO, converter=atomic)
    spent_day: int = -1
    spent_atomic: Atomic = attrs.field(default=ZERO, converter=atomic)

    @property
    def available(self) -> Money:
        """The amount that may still be reserved; never below zero."""
        return Money(max(0, self.total_atomic - self.reserved_atomic), self.asset_id)


def balance_id(vault_id: str, symbol: str) -> str:
    """The id of a vault's balance record for an asset."""
    return f"{vault_id}/{symbol}"


def policy_version_id(policy_id: str, policy_version: int) -> str:
    """The id of the record of a policy's version."""
    return f"{policy_id}/{policy_version}"
