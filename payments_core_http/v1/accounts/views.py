"""Money Accounts as v1 returns them (interface "Money Account")."""

from __future__ import annotations

from typing import Literal

from payments_core.accounts.operations import AccountDetails
from payments_core.accounts.record import KycStatus
from payments_core.accounts.vaults.record import Vault
from payments_core.clock import format_iso
from payments_core.deposits.record import DepositAddress
from payments_core.networks import DEFAULT_CHAIN_ID, ChainType
from payments_core_http.v1.envelope import Success
from payments_core_http.wire.classes import frozen_view

LegacyKycStatus = Literal["not_started", "pending", "completed", "rejected"]

_KYC: dict[KycStatus, LegacyKycStatus] = {
    "not_started": "not_started",
    "pending": "pending",
    "approved": "completed",
    "rejected": "rejected",
}


@frozen_view
class MoneyAccountView:
    """A Money Account: the account that v2 has under the same id."""

    userId: str
    username: str | None
    paymentAddress: str | None
    vaultAddress: str
    addresses: tuple[str, ...]
    kycStatus: LegacyKycStatus
    """The state of the account's verification."""
    isKYC: bool
    kycProviderToken: str | None
    preferredSettlementChain: int | None
    preferredSettlementToken: str | None
    createdAt: str


@frozen_view
class LinkedAddressView:
    """A wallet address of an account."""

    address: str
    chainType: ChainType


@frozen_view
class LinkedAddressesView:
    """The wallet addresses of an account."""

    userId: str
    addresses: tuple[LinkedAddressView, ...]


@frozen_view
class AddressOwnerView:
    """The account that a wallet address is linked to."""

    userId: str
    partnerId: str
    """The partner whose account it is."""
    username: str | None
    addresses: tuple[LinkedAddressView, ...]
    vaultAddress: str
    isKYC: bool
    kycProviderToken: str | None


@frozen_view
class ResolvedAddressView:
    """The account that a payment address pays."""

    userId: str
    username: str
    paymentAddress: str
    """The requested payment address."""
    vaultAddress: str


@frozen_view
class KycDoneView:
    """Whether an account is verified. The token is a reference that gives no access."""

    isKYC: bool
    kycProviderToken: str | None


@frozen_view
class PreferencesView:
    """Where an account is to be paid."""

    userId: str
    preferredSettlementChain: int
    preferredSettlementToken: str


@frozen_view
class ChosenUsernameView:
    """The payment address that a username makes."""

    paymentAddress: str


@frozen_view
class UsernameAvailabilityView:
    """Whether an account could have the username now."""

    username: str
    """The requested name."""
    available: bool
    """Whether an account could have it now."""


@frozen_view
class GeneratedAddressView:
    """An account's deposit address on a chain; the same at every call."""

    userId: str
    depositAddress: str
    """The account's static address on the chain."""
    chainType: ChainType
    chainId: int


@frozen_view
class MoneyAccountResponse(Success):
    """A Money Account."""

    data: MoneyAccountView
    """The Money Account."""


@frozen_view
class LinkedAddressesResponse(Success):
    """The account's addresses, with the new one."""

    data: LinkedAddressesView
    """The account's addresses."""
    message: str = "The address was added."
    """What was done."""


@frozen_view
class AddressOwnerResponse(Success):
    """The account that an address is linked to."""

    data: AddressOwnerView
    """The account that the address is linked to."""


@frozen_view
class ResolvedAddressResponse(Success):
    """The account behind a payment address."""

    data: ResolvedAddressView
    """The account behind the payment address."""


@frozen_view
class KycDoneResponse(Success):
    """Whether an account is verified."""

    data: KycDoneView
    """Whether the account is verified."""


@frozen_view
class PreferencesResponse(Success):
    """The changed preferences."""

    data: PreferencesView
    """The preferences."""
    message: str = "The settlement preferences were updated."
    """What was done."""


@frozen_view
class ChosenUsernameResponse(Success):
    """The new payment address."""

    data: ChosenUsernameView
    """The payment address."""
    message: str = "The username was set."
    """What was done."""


@frozen_view
class UsernameAvailabilityResponse(Success):
    """Whether a username is available."""

    data: UsernameAvailabilityView
    """Whether the name is available."""


@frozen_view
class GeneratedAddressResponse(Success):
    """A deposit address."""

    data: GeneratedAddressView
    """The deposit address."""


def money_account(details: AccountDetails) -> MoneyAccountView:
    """An account with what belongs to it."""
    account, settlement = details.account, details.account.settlement
    return MoneyAccountView(
        userId=account.id,
        username=account.username,
        paymentAddress=account.payment_address,
        vaultAddress=vault_address(details),
        addresses=tuple(wallet.address for wallet in details.wallets),
        kycStatus=_KYC[account.kyc_status],
        isKYC=_is_verified(details),
        kycProviderToken=account.verification_id,
        preferredSettlementChain=settlement.chain_id if settlement else None,
        preferredSettlementToken=settlement.asset_symbol if settlement else None,
        createdAt=format_iso(account.created_at_ms),
    )


def address_owner(details: AccountDetails) -> AddressOwnerView:
    """The account that an address is linked to."""
    return AddressOwnerView(
        userId=details.account.id,
        partnerId=details.account.partner_id,
        username=details.account.username,
        addresses=_addresses(details),
        vaultAddress=vault_address(details),
        isKYC=_is_verified(details),
        kycProviderToken=details.account.verification_id,
    )


def linked_addresses(details: AccountDetails) -> LinkedAddressesView:
    """The wallet addresses of an account."""
    return LinkedAddressesView(userId=details.account.id, addresses=_addresses(details))


def resolved_address(details: AccountDetails) -> ResolvedAddressView:
    """The account behind a payment address, which therefore has a username."""
    account = details.account
    assert account.username is not None
    assert account.payment_address is not None
    return ResolvedAddressView(
        userId=account.id,
        username=account.username,
        paymentAddress=account.payment_address,
        vaultAddress=vault_address(details),
    )


def kyc_done(details: AccountDetails) -> KycDoneView:
    """Whether an account is verified."""
    return KycDoneView(
        isKYC=_is_verified(details), kycProviderToken=details.account.verification_id
    )


def preferences(details: AccountDetails) -> PreferencesView:
    """The preferences of an account that has some."""
    settlement = details.account.settlement
    assert settlement is not None
    return PreferencesView(
        userId=details.account.id,
        preferredSettlementChain=settlement.chain_id,
        preferredSettlementToken=settlement.asset_symbol,
    )


def chosen_username(details: AccountDetails) -> ChosenUsernameView:
    """The payment address of an account that has one."""
    assert details.account.payment_address is not None
    return ChosenUsernameView(paymentAddress=details.account.payment_address)


def generated_address(address: DepositAddress) -> GeneratedAddressView:
    """A deposit address."""
    return GeneratedAddressView(
        userId=address.account_id,
        depositAddress=address.address,
        chainType=address.chain_type,
        chainId=address.chain_id,
    )


def vault_address(details: AccountDetails) -> str:
    """The vault on the chain where the account is to be paid, or on the service's default chain."""
    settlement = details.account.settlement
    by_chain: dict[int, Vault] = {vault.chain_id: vault for vault in details.vaults}
    wanted = by_chain.get(settlement.chain_id if settlement else DEFAULT_CHAIN_ID)
    return (wanted or by_chain.get(DEFAULT_CHAIN_ID) or details.vaults[0]).address


def _addresses(details: AccountDetails) -> tuple[LinkedAddressView, ...]:
    return tuple(
        LinkedAddressView(address=wallet.address, chainType=wallet.chain_type)
        for wallet in details.wallets
    )


def _is_verified(details: AccountDetails) -> bool:
    return details.account.kyc_status == "approved"
