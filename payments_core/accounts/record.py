"""Accounts and wallets as they are stored (contract §5)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, ClassVar, Literal

import attrs

from payments_core.clock import Instant
from payments_core.field_views import FieldView, instant_view, optional_instant_view
from payments_core.networks import ChainType
from payments_core.storage.records import Collection, Index, Record, Unique

SubjectType = Literal["individual", "business"]
AccountStatus = Literal["active", "suspended", "closed"]
KycStatus = Literal["not_started", "pending", "approved", "rejected"]

MAX_WALLETS = 50
"""The maximum number of wallets of an account."""

MAX_ONRAMPS = 50
"""The maximum number of on-ramps of an account: the bank keeps a number for each."""


@attrs.frozen(kw_only=True)
class Settlement:
    """Where an account wants to be paid: a chain by its EIP-155 number, an asset by its symbol.

    >>> wanted = Settlement(chain_id=8453, asset_symbol="USDC")
    >>> shop.accounts.set_settlement(bob.id, wanted).account.settlement == wanted
    True
    """

    chain_id: int
    asset_symbol: str


@attrs.frozen(kw_only=True, slots=False)
class Account(Record):
    """One user of a partner. `username_key` is the username in lower case, for uniqueness.

    `wallet_count` is the number of wallets, and `onramp_count` the number of on-ramps added: rows
    cannot be counted under a lock. `verification_id` is the newest verification, even if the
    provider has not begun it. `labels` say what has happened to the account; none is ever removed.

    >>> [newest] = shop.accounts.list_briefly(limit=1).records
    >>> newest.status
    'active'
    """

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
        schema=4,
    )

    external_user_id: str
    subject_type: SubjectType
    status: AccountStatus = "active"
    username: str | None = None
    username_key: str | None = None
    partner_id: str
    email: str | None = None
    settlement: Settlement | None = None
    kyc_status: KycStatus = "not_started"
    verification_id: str | None = None
    wallet_count: int = 0
    onramp_count: int = 0
    labels: tuple[str, ...] = ()
    metadata: Mapping[str, Any] | None = None
    created_at_ms: Instant
    updated_at_ms: Instant

    created_at: ClassVar[FieldView[datetime]] = instant_view("created_at_ms")
    updated_at: ClassVar[FieldView[datetime]] = instant_view("updated_at_ms")

    @property
    def payment_address(self) -> str | None:
        """`<username>@<partner id>`, for accounts with a username."""
        return f"{self.username}@{self.partner_id}" if self.username else None


@attrs.frozen(kw_only=True, slots=False)
class Wallet(Record):
    """A wallet address of an account, listed once per account.

    An address given at creation proves nothing. A key that signed proves it on every chain
    (`key_proof`), and belongs to a single account of the environment: `verified_address` is a
    unique key. A contract proves it on its own chain (`contract_chains`): elsewhere somebody
    else's code may have the address, and each chain's proof has its own `WalletProof`.

    A wallet that an earlier release verified has neither: it may be either, and counts as one whose
    key signed, except that no contract speaks for it until it is linked again.

    >>> new = NewWallet(address="0xd8BC79b53BD5BE614dCD5Ee8e12A05f44eDFAd2B", chain_type="evm")
    >>> gil = NewAccount(external_user_id="gil", subject_type="individual", wallets=(new,))
    >>> shop.accounts.create(gil).wallets
    (Wallet(id='wallet_...', account_id='acct_...', chain_type='evm', address='0xd8BC...', ...),)
    """

    collection: ClassVar[Collection] = Collection(
        "wallets",
        columns={
            "account_id": str,
            "chain_type": str,
            "address": str,
            "verified_address": str,
            "created_at": int,
            "ordinal": int,
        },
        indexes=(
            Index("by_account", key=("account_id",), order=("created_at", "ordinal")),
            Index("by_address", key=("account_id", "chain_type", "address")),
            Index("by_verified_address", key=("verified_address",)),
            Index("by_linked_address", key=("chain_type", "address"), order=("created_at",)),
        ),
        uniques=(
            Unique("address_of_account", ("account_id", "chain_type", "address")),
            Unique("verified_address", ("verified_address",)),
        ),
        schema=3,
    )

    account_id: str
    chain_type: ChainType
    address: str
    label: str | None = None
    verified_at_ms: Instant | None = None
    key_proof: bool = False
    contract_chains: tuple[int, ...] = ()
    ordinal: int = 0
    created_at_ms: Instant

    verified_at: ClassVar[FieldView[datetime | None]] = optional_instant_view("verified_at_ms")
    created_at: ClassVar[FieldView[datetime]] = instant_view("created_at_ms")

    @property
    def verified(self) -> bool:
        """Whether the account has proven to control it, by its key or on a chain."""
        return self.verified_at_ms is not None

    @property
    def is_verified_everywhere(self) -> bool:
        """Whether the proof holds on every chain."""
        return self.verified and (self.key_proof or not self.contract_chains)

    def is_verified_on(self, chain_id: int) -> bool:
        """Whether the account has proven to control it on a chain."""
        return self.is_verified_everywhere or chain_id in self.contract_chains

    def may_sign_as_contract_on(self, chain_id: int) -> bool:
        """Whether the word of a contract at its address counts on a chain.

        No stranger's code can be at the address of a key (EIP-7702: its owner decides).
        """
        return self.key_proof or chain_id in self.contract_chains

    @property
    def updated_at_ms(self) -> Instant:
        """When it last changed: only a proof changes it."""
        return self.created_at_ms if self.verified_at_ms is None else self.verified_at_ms

    updated_at: ClassVar[FieldView[datetime]] = instant_view("updated_at_ms")

    @property
    def verified_address(self) -> str | None:
        """The address with its chain type, once verified on every chain."""
        if not self.is_verified_everywhere:
            return None
        return address_key(self.chain_type, self.address)


@attrs.frozen(kw_only=True, slots=False)
class WalletProof(Record):
    """An EVM address whose contract on one chain has accepted an account's proof.

    Its id is made of both, so that the address belongs to a single account on each chain.
    """

    collection: ClassVar[Collection] = Collection(
        "wallet_proofs",
        columns={"address": str},
        indexes=(Index("by_address", key=("address",)),),
        schema=2,
    )

    address: str
    chain_id: int
    account_id: str
    created_at_ms: Instant

    created_at: ClassVar[FieldView[datetime]] = instant_view("created_at_ms")


@attrs.frozen(kw_only=True, slots=False)
class WalletChallenge(Record):
    """A text to be signed, once and in time, by one address for one account.

    With `chain_id`, a contract's answer counts on that chain alone.

    >>> address = "0x7476609c9e396ea1ecAFDfaf204457d0B83a338f"
    >>> print(shop.wallets.create_challenge(bob.id, address, "evm").message)
    Payments Core asks you to prove that this wallet is yours.
    ...
    """

    collection: ClassVar[Collection] = Collection(
        "wallet_challenges",
        columns={"account_id": str, "expires_at": int},
        indexes=(Index("by_account", key=("account_id",), order=("expires_at",)),),
        schema=3,
    )

    account_id: str
    chain_type: ChainType
    address: str
    chain_id: int | None = None
    nonce: str
    message: str
    created_at_ms: Instant
    expires_at_ms: Instant
    used_at_ms: Instant | None = None

    created_at: ClassVar[FieldView[datetime]] = instant_view("created_at_ms")
    expires_at: ClassVar[FieldView[datetime]] = instant_view("expires_at_ms")
    used_at: ClassVar[FieldView[datetime | None]] = optional_instant_view("used_at_ms")


@attrs.frozen(kw_only=True, slots=False)
class SignedMessage(Record):
    """A text of the caller's own that a wallet has signed to be linked, by the digest of both.

    It is kept permanently: the text does not expire, and its signature works once.
    """

    collection: ClassVar[Collection] = Collection("signed_messages", schema=2)

    account_id: str
    used_at_ms: Instant

    used_at: ClassVar[FieldView[datetime]] = instant_view("used_at_ms")


def address_key(chain_type: ChainType, address: str) -> str:
    """A canonical address with its chain type; one EVM address is the same on every EVM chain."""
    return f"{chain_type}:{address}"


def proof_id(address: str, chain_id: int) -> str:
    """The id of the proof of an EVM address on a chain."""
    return f"{chain_id}:{address}"
