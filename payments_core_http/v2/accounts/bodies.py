"""Accounts and what belongs to them."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

from payments_core.addresses import AddressError, normalize_address
from payments_core.errors import FieldError
from payments_core.validation.fields import (
    Address,
    AssetSymbol,
    ChainId,
    Email,
    ExternalUserId,
    Label,
    Username,
)
from payments_core.validation.metadata import Metadata
from payments_core_http.wire.classes import frozen_body
from payments_core_http.wire.query import PageQuery


@frozen_body
class Wallet:
    """A wallet address of the account; it is not verified."""

    address: Address
    chainType: Literal["evm", "solana", "aptos"]
    label: Label | None = None

    def faults(self) -> list[FieldError]:
        """An address that is not valid for its chain type."""
        try:
            normalize_address(self.chainType, self.address)
        except AddressError as error:
            return [FieldError("address", str(error))]
        return []


@frozen_body
class Settlement:
    """Where the account is to be paid."""

    chainId: ChainId
    assetSymbol: AssetSymbol


@frozen_body
class Handle:
    """The name of the account's payment address."""

    username: Username


@frozen_body
class CreateAccount:
    """A new account for one of your users."""

    externalUserId: ExternalUserId
    subjectType: Literal["individual", "business"]
    username: Username | None = None
    email: Email | None = None
    wallets: Annotated[tuple[Wallet, ...], Meta(max_length=50)] = ()
    settlement: Settlement | None = None
    metadata: Metadata | None = None


@frozen_body
class ChangeAccount:
    """An absent field stays as it is; null clears it."""

    email: Email | UnsetType | None = UNSET
    """The account's email address; null clears it."""
    metadata: Metadata | UnsetType | None = UNSET
    status: Literal["active", "suspended", "closed"] | UnsetType = UNSET
    """The new state."""


@frozen_body
class ListAccounts(PageQuery):
    """All accounts, or the account of an external user."""

    externalUserId: ExternalUserId | None = None
