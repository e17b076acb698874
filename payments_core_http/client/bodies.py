# Printed from the OpenAPI document by docs/client: run `make client`.
"""The parts of what is sent to the service."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec
from msgspec import UNSET, UnsetType

from payments_core_http.client.structs import Body


class PaymentSettingsAllowedWallet(Body, frozen=True, kw_only=True):
    """An address that public Payments may pay, on its chain."""

    type: Literal["wallet"] = "wallet"
    chain_id: int
    address: str


class BrandingInput(Body, frozen=True, kw_only=True):
    """What the checkout page shows."""

    name: str | UnsetType | None = UNSET
    logo_url: str | UnsetType | None = UNSET
    """An http(s) URL."""
    primary_color: str | UnsetType | None = UNSET
    """A color such as #1a2b3c."""


class WalletInput(Body, frozen=True, kw_only=True):
    """A wallet address of the account; given here it proves nothing. Refused too: an address
    that is none of its chain type.
    """

    address: str
    chain_type: Literal["evm", "solana", "aptos"]
    label: str | UnsetType | None = UNSET


class Settlement(Body, frozen=True, kw_only=True):
    """Where the account wants to be paid."""

    chain_id: int
    asset_symbol: str


class PostalAddress(Body, frozen=True, kw_only=True):
    """An address in the United States."""

    line1: str
    line2: str | UnsetType | None = UNSET
    city: str
    state: str
    """A state as two capital letters, such as NY."""
    postal_code: str
    """A ZIP code such as 10001 or 10001-2345."""
    country: Literal["US"] = "US"


class OnrampDestinationInput(Body, frozen=True, kw_only=True):
    """Where the stablecoins go: the account's vault on the chain, or a wallet's `address`."""

    type: Literal["vault", "wallet"]
    chain_id: int
    asset_symbol: str
    address: str | UnsetType | None = UNSET


class VaultsAllowedWallet(Body, frozen=True, kw_only=True):
    """An address that may be paid, on one chain or on any."""

    type: Literal["wallet"] = "wallet"
    address: str
    chain_id: int | UnsetType | None = UNSET


class AllowedAccountInput(Body, frozen=True, kw_only=True):
    """An account that may be paid."""

    type: Literal["account"] = "account"
    account_id: str


class AccountDestination(Body, frozen=True, kw_only=True):
    """Pay an account."""

    type: Literal["account"] = "account"
    account_id: str | UnsetType | None = UNSET
    external_user_id: str | UnsetType | None = UNSET


class PaymentAddressDestination(Body, frozen=True, kw_only=True):
    """Pay `<username>@<partner id>`."""

    type: Literal["payment_address"] = "payment_address"
    payment_address: str


class WalletDestination(Body, frozen=True, kw_only=True):
    """Pay an address on the Payment's chain."""

    type: Literal["wallet"] = "wallet"
    address: str


class VaultSource(Body, frozen=True, kw_only=True):
    """The vault that pays: its account, and which chain and asset."""

    type: Literal["vault"] = "vault"
    account_id: str
    chain_id: int | UnsetType | None = UNSET
    asset_symbol: str | UnsetType | None = UNSET


class WalletOnChainDestination(Body, frozen=True, kw_only=True):
    """Pay an address, on the chain that the source is on."""

    type: Literal["wallet"] = "wallet"
    address: str
    chain_id: int | UnsetType | None = UNSET


class BankDestination(Body, frozen=True, kw_only=True):
    """Pay a bank account. Each rail has its own text for the recipient's statement. Refused
    too: the text of the other rail.
    """

    type: Literal["bank_account"] = "bank_account"
    bank_account_id: str
    rail: Literal["ach", "wire"]
    ach_reference: str | UnsetType | None = UNSET
    wire_message: str | UnsetType | None = UNSET


class SettlementPayload(Body, frozen=True, kw_only=True):
    """The message that was signed; `deadline` is in Unix seconds."""

    quote_id: str
    nonce: int | str
    deadline: int | str


class SettlementDomain(Body, frozen=True, kw_only=True):
    """The domain of the typed data: `Money Accounts`, version 1, and the payer's vault."""

    name: str
    version: str
    chain_id: int | str
    verifying_contract: str


class TypedField(Body, frozen=True, kw_only=True):
    """A field of a type of EIP-712."""

    name: str
    type: str


class SettlementTypes(Body, frozen=True, kw_only=True):
    """The types of the typed data; libraries add `EIP712Domain` themselves."""

    settlement: Sequence[TypedField] = msgspec.field(name="Settlement")
    eip712_domain: Sequence[TypedField] | UnsetType | None = msgspec.field(
        default=UNSET, name="EIP712Domain"
    )


class OwnersCall(Body, frozen=True, kw_only=True):
    """The call that the vault shall make of itself: `enableModule` of its role module."""

    to: str
    value: str | UnsetType | None = UNSET
    """A digit string such as 0."""
    data: str
    """0x and bytes in hex."""
    operation: int | UnsetType | None = UNSET


class OwnAccountInput(Body, frozen=True, kw_only=True):
    """The caller's own account, which is the only one that it may be paid to."""

    type: Literal["account"] = "account"
    account_id: str


class Proof(Body, frozen=True, kw_only=True):
    """The payer's approval, given to the partner's app."""

    type: Literal["managed_authorization"] = "managed_authorization"
    authorization: Literal["approved"] = "approved"
