# Printed from the OpenAPI document by docs/client: run `make client`.
"""The parts of requests to the service."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import msgspec
from msgspec import UNSET, UnsetType

from payments_core_http.client.structs import Body


class PaymentSettingsAllowedWallet(Body, frozen=True, kw_only=True):
    """An address that public Payments may pay, on its chain."""

    type: Literal["wallet"] = "wallet"
    """Its kind."""
    chain_id: int
    """The number of the chain, such as 8453 for Base."""
    address: str
    """The address on the chain."""


class BrandingInput(Body, frozen=True, kw_only=True):
    """What the checkout page shows."""

    name: str | UnsetType | None = UNSET
    """Your name on the page."""
    logo_url: str | UnsetType | None = UNSET
    """Your logo; null without one. An http(s) URL."""
    primary_color: str | UnsetType | None = UNSET
    """The color of links, buttons and the line at the top; null means the page's default. A
color such as #1a2b3c.
"""
    currency: str | UnsetType | None = UNSET
    """The currency of your prices (ISO 4217), in which the page shows about what an amount
is worth; null means US dollars. A currency of ISO 4217, such as EUR.
"""


class WalletInput(Body, frozen=True, kw_only=True):
    """A wallet address of the account; it is not verified. Also refused: an address that is
    not valid for its chain type.
    """

    address: str
    """The address on the chain."""
    chain_type: Literal["evm", "solana", "aptos"]
    """The family of the chain; it determines the format of addresses and signatures."""
    label: str | UnsetType | None = UNSET
    """Your own name for the wallet."""


class Settlement(Body, frozen=True, kw_only=True):
    """Where the account is to be paid."""

    chain_id: int
    """The number of the chain, such as 8453 for Base."""
    asset_symbol: str
    """The asset's symbol, such as `USDC`."""


class PostalAddress(Body, frozen=True, kw_only=True):
    """An address in the United States."""

    line1: str
    """The first line of the street address. 35 characters at most, in printable ASCII, as US
banks carry it.
"""
    line2: str | UnsetType | None = UNSET
    """The second line of the street address. 35 characters at most, in printable ASCII, as
US banks carry it.
"""
    city: str
    """The city. 35 characters at most, in printable ASCII, as US banks carry it."""
    state: str
    """The state, as two letters. A state as two capital letters, such as NY."""
    postal_code: str
    """The postal code. A ZIP code such as 10001 or 10001-2345."""
    country: Literal["US"] = "US"
    """The country, as two letters (ISO 3166-1)."""


class OnrampDestinationInput(Body, frozen=True, kw_only=True):
    """Where the stablecoins go: the account's vault on the chain, or a wallet's `address`."""

    type: Literal["vault", "wallet"]
    """Whether a vault or a wallet is credited."""
    chain_id: int
    """The number of the chain, such as 8453 for Base."""
    asset_symbol: str
    """The asset's symbol, such as `USDC`."""
    address: str | UnsetType | None = UNSET
    """The wallet to credit; absent for a vault."""


class VaultsAllowedWallet(Body, frozen=True, kw_only=True):
    """An address that may be paid, on one chain or on any."""

    type: Literal["wallet"] = "wallet"
    """Its kind."""
    address: str
    """The address on the chain."""
    chain_id: int | UnsetType | None = UNSET
    """The number of the chain, such as 8453 for Base."""


class AllowedAccountInput(Body, frozen=True, kw_only=True):
    """An account that may be paid."""

    type: Literal["account"] = "account"
    """Its kind."""
    account_id: str
    """The account's id."""


class AccountDestination(Body, frozen=True, kw_only=True):
    """Pay an account."""

    type: Literal["account"] = "account"
    """Its kind."""
    account_id: str | UnsetType | None = UNSET
    """The account's id."""
    external_user_id: str | UnsetType | None = UNSET
    """Your own id of the account's user."""


class PaymentAddressDestination(Body, frozen=True, kw_only=True):
    """Pay `<username>@<partner id>`."""

    type: Literal["payment_address"] = "payment_address"
    """Its kind."""
    payment_address: str
    """`<username>@<partner id>`; null without a username."""


class WalletDestination(Body, frozen=True, kw_only=True):
    """Pay an address on the Payment's chain."""

    type: Literal["wallet"] = "wallet"
    """Its kind."""
    address: str
    """The address on the chain."""


class VaultSource(Body, frozen=True, kw_only=True):
    """The vault that pays: its account, and which chain and asset."""

    type: Literal["vault"] = "vault"
    """Its kind."""
    account_id: str
    """The account's id."""
    chain_id: int | UnsetType | None = UNSET
    """The number of the chain, such as 8453 for Base."""
    asset_symbol: str | UnsetType | None = UNSET
    """The asset's symbol, such as `USDC`."""


class WalletOnChainDestination(Body, frozen=True, kw_only=True):
    """Pay an address, on the chain of the source."""

    type: Literal["wallet"] = "wallet"
    """Its kind."""
    address: str
    """The address on the chain."""
    chain_id: int | UnsetType | None = UNSET
    """The number of the chain, such as 8453 for Base."""


class BankDestination(Body, frozen=True, kw_only=True):
    """Pay a bank account. Each rail has its own text for the recipient's statement. Also
    refused: the text of the other rail.
    """

    type: Literal["bank_account"] = "bank_account"
    """Its kind."""
    bank_account_id: str
    """The bank account to pay to."""
    rail: Literal["ach", "wire"]
    """The kind of bank transfer."""
    ach_reference: str | UnsetType | None = UNSET
    """The text on the recipient's statement for an ACH payment. In printable ASCII, as US
banks carry it.
"""
    wire_message: str | UnsetType | None = UNSET
    """The message of a wire. In letters A to Z, digits, spaces and / - ? : ( ) . , ' +."""


class EventFilterInput(Body, frozen=True, kw_only=True):
    """A rule over a field of an event: `in` takes `values`, `exists` and `absent` nothing,
    and the other operators a `value`. An absent field, or null, satisfies `absent` alone.
    """

    field: str
    """The path of a field of the event: `name`, `createdAt`, `payload.` with the name of a
field of the catalog, or `payload.metadata.` with a key of your own.
"""
    op: Literal["=", "!=", ">", ">=", "<", "<=", "in", "exists", "absent"]
    """How the field is compared; sizes are for numbers, amounts and times."""
    value: str | UnsetType | None = UNSET
    """What it is compared with; amounts are in the smallest unit."""
    values: Sequence[str] | UnsetType | None = UNSET
    """The values of `in`."""


class SettlementPayload(Body, frozen=True, kw_only=True):
    """The message that was signed; `deadline` is in Unix seconds."""

    quote_id: str
    """The quote's id."""
    nonce: int | str
    """A number that the signer chooses; it can be used once."""
    deadline: int | str
    """When the signature expires, in Unix seconds."""


class SettlementDomain(Body, frozen=True, kw_only=True):
    """The domain of the typed data: `Money Accounts`, version 1, and the payer's vault."""

    name: str
    """The domain's name."""
    version: str
    """The domain's version."""
    chain_id: int | str
    """The number of the chain, such as 8453 for Base."""
    verifying_contract: str
    """The payer's vault."""


class TypedField(Body, frozen=True, kw_only=True):
    """A field of a type of EIP-712."""

    name: str
    """The field's name."""
    type: str
    """The field's type in Solidity."""


class SettlementTypes(Body, frozen=True, kw_only=True):
    """The types of the typed data; libraries add `EIP712Domain` themselves."""

    settlement: Sequence[TypedField] = msgspec.field(name="Settlement")
    """The fields of the message."""
    eip712_domain: Sequence[TypedField] | UnsetType | None = msgspec.field(
        default=UNSET, name="EIP712Domain"
    )
    """The type of the domain; signing libraries add it themselves."""


class OwnersCall(Body, frozen=True, kw_only=True):
    """The call that the vault is to make on itself: `enableModule` of its role module."""

    to: str
    """The contract to call."""
    value: str | UnsetType | None = UNSET
    """The native currency to send along. A digit string such as 0."""
    data: str
    """The call's data in hex. 0x and bytes in hex."""
    operation: int | UnsetType | None = UNSET
    """The kind of call; 0 is a plain call."""


class OwnAccountInput(Body, frozen=True, kw_only=True):
    """The caller's own account, the only one to which it may be paid."""

    type: Literal["account"] = "account"
    """Its kind."""
    account_id: str
    """The account's id."""


class Proof(Body, frozen=True, kw_only=True):
    """The payer's approval, given to the partner's app."""

    type: Literal["managed_authorization"] = "managed_authorization"
    """Its kind."""
    authorization: Literal["approved"] = "approved"
    """The payer's authorization."""
