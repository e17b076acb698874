"""Accounts and wallets as they are stored (contract §5)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import attrs

from payments_core.assets import ChainType
from payments_core.clock import Instant
from payments_core.storage.records import Collection, Index, Record, Unique

SubjectType = Literal["individual", "business"]
AccountStatus = Literal["active", "suspended", "closed"]


@attrs.frozen(kw_only=True)
class Settlement:
    """Where an account wants to be paid."""

    chain_id: int
    asset_symbol: str


@attrs.frozen(kw_only=True)
class Account(Record):
    """One user of a partner. `username_key` is the username in lower case, for uniqueness."""

    collection: ClassVar[Collection] = Collection(
        "accounts",
        columns={"external_user_id": str, "username_key": str, "created_at": int},
        indexes=(
            Index("by_created", order=("created_at",), descending=True),
            Index("by_external_user", key=("external_user_id",)),
            Index("by_username", key=("username_key",)),
        ),
        uniques=(
            Unique("external_user", ("external_user_id",)),
            Unique("username", ("username_key",)),
        ),
    )

    external_user_id: str
    subject_type: SubjectType
    status: AccountStatus = "active"
    username: str | None = None
    username_key: str | None = None
    partner_id: str
    email: str | None = None
    settlement: Settlement | None = None
    kyc_status: str = "not_started"
    metadata: Mapping[str, Any] | None = None
    created_at: Instant
    updated_at: Instant

    @property
    def payment_address(self) -> str | None:
        """`<username>@<partner id>`, for accounts with a username."""
        return f"{self.username}@{self.partner_id}" if self.username else None


@attrs.frozen(kw_only=True)
class Wallet(Record):
    """A wallet address of an account. One given at creation proves nothing: not verified."""

    collection: ClassVar[Collection] = Collection(
        "wallets",
        columns={"account_id": str, "created_at": int, "ordinal": int},
        indexes=(Index("by_account", key=("account_id",), order=("created_at", "ordinal")),),
    )

    account_id: str
    chain_type: ChainType
    address: str
    label: str | None = None
    verified: bool = False
    ordinal: int = 0
    created_at: Instant
