"""Vaults: their policies, mandates and yield settings."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

from payments_core.accounts.vaults.yields import YieldStrategy
from payments_core.validation.fields import AccountId, Address, Amount, AssetSymbol, ChainId
from payments_core.validation.metadata import Metadata
from payments_core_http.v2.types import Moment
from payments_core_http.wire.classes import frozen_body

Version = Annotated[int, Meta(ge=1)]


@frozen_body
class ProvisionVault:
    """The chain on which the account is to have a vault."""

    chainId: ChainId


@frozen_body
class AllowedWallet:
    """An address that may be paid, on one chain or on any."""

    type: Literal["wallet"]
    address: Address
    chainId: ChainId | None = None


@frozen_body
class AllowedAccount:
    """An account that may be paid."""

    type: Literal["account"]
    accountId: AccountId


@frozen_body
class ReplacePolicy:
    """The whole policy: an absent field or null means no limit, and an empty list allows nothing.

    `status` is required, so that a change of a limit does not resume a paused vault by accident.
    `version` is the version that you read and replace; a version that is not current is a conflict.
    """

    status: Literal["active", "paused"]
    """Whether the vault may pay at all."""
    perPaymentLimit: Amount | None = None
    dailyLimit: Amount | None = None
    allowedChains: Annotated[tuple[ChainId, ...], Meta(max_length=100)] | None = None
    allowedAssets: Annotated[tuple[AssetSymbol, ...], Meta(max_length=100)] | None = None
    allowedDestinations: (
        Annotated[tuple[AllowedWallet | AllowedAccount, ...], Meta(max_length=100)] | None
    ) = None
    version: Version | None = None
    """The version that you read and replace."""


@frozen_body
class PolicyQuery:
    """Which version of a policy to read; without one, the current version."""

    version: Version | None = None
    """The version; it rises at each change."""


@frozen_body
class ReplaceYieldSettings:
    """Whether a vault's idle funds are to earn, and how."""

    enabled: bool
    strategy: YieldStrategy | None = None


@frozen_body
class CreateMandate:
    """A standing approval to collect from a vault; periods are those of the UTC calendar.

    A null `expiresAt` is refused: it may be a value that was lost, and without one the mandate
    never expires.
    """

    vaultId: Annotated[str, Meta(min_length=1, max_length=64)]
    assetSymbol: AssetSymbol = "USDC"
    amountPerPeriod: Amount
    period: Literal["day", "week", "month"]
    expiresAt: Moment | UnsetType = UNSET
    reference: Annotated[str, Meta(min_length=1, max_length=128)] | None = None
    metadata: Metadata | None = None
