"""Accounts, vaults, capabilities and balances as v2 returns them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from payments_core.accounts.capabilities.record import CAPABILITIES, CapabilityStatus
from payments_core.accounts.capabilities.requirements import Capability
from payments_core.accounts.operations import AccountDetails
from payments_core.accounts.record import (
    AccountStatus,
    KycStatus,
    Settlement,
    SubjectType,
)
from payments_core.accounts.vaults.operations import Holding
from payments_core.accounts.vaults.record import Vault, VaultStatus
from payments_core.clock import format_iso
from payments_core.money import format_amount
from payments_core_http.v2.accounts.actions import ActionView, actions_of_capability
from payments_core_http.v2.wallets.views import WalletView, wallet
from payments_core_http.wire.classes import frozen_view


@frozen_view
class VaultView:
    """A vault on one chain."""

    vaultId: str
    chainId: int
    address: str
    """The vault's address."""
    status: VaultStatus
    """Whether its contract is deployed."""


@frozen_view
class SettlementView:
    """Where an account is to be paid."""

    chainId: int
    assetSymbol: str


@frozen_view
class KycView:
    """The state of the account's verification."""

    status: KycStatus


@frozen_view
class AccountView:
    """An account (contract §5)."""

    id: str
    accountId: str
    externalUserId: str
    subjectType: SubjectType
    status: AccountStatus
    username: str | None
    email: str | None
    paymentAddress: str | None
    vaults: tuple[VaultView, ...]
    wallets: tuple[WalletView, ...]
    settlement: SettlementView | None
    kyc: KycView
    capabilities: Mapping[str, CapabilityStatus]
    labels: tuple[str, ...]
    """`misdirected` once a token arrived that it is not credited with; never removed."""
    metadata: Mapping[str, Any] | None
    createdAt: str
    updatedAt: str


@frozen_view
class RequirementsView:
    """The requirements of a capability, by name."""

    missing: tuple[str, ...]
    """The requirements that are still missing."""
    pending: tuple[str, ...]
    """The requirements that are being reviewed."""
    complete: tuple[str, ...]
    """The requirements that are complete."""


@frozen_view
class CapabilityView:
    """A capability of an account; `actions` says who supplies what is missing, and where."""

    status: CapabilityStatus
    requirements: RequirementsView
    actions: tuple[ActionView, ...]


@frozen_view
class CapabilitiesView:
    """The capabilities of an account, by name (contract §7)."""

    accountId: str
    capabilities: Mapping[str, CapabilityView]


@frozen_view
class BalanceView:
    """What a vault holds of one asset, on chain at the newest final block."""

    chainId: int
    assetSymbol: str
    tokenAddress: str
    decimals: int
    totalAtomic: str
    """What the vault holds on chain at the newest final block, in the smallest unit."""
    availableAtomic: str
    """What can still be authorized, in the smallest unit: the total less what is reserved."""
    reservedAtomic: str
    """What is reserved by authorizations that are not final yet, in the smallest unit."""
    available: str
    """What can still be authorized, as a decimal string."""


@frozen_view
class BalancesView:
    """The balances of an account's vaults."""

    accountId: str
    balances: tuple[BalanceView, ...]
    """The balances."""


def account(details: AccountDetails) -> AccountView:
    """An account with what belongs to it."""
    record = details.account
    return AccountView(
        id=record.id,
        accountId=record.id,
        externalUserId=record.external_user_id,
        subjectType=record.subject_type,
        status=record.status,
        username=record.username,
        email=record.email,
        paymentAddress=record.payment_address,
        vaults=tuple(_vault(vault) for vault in details.vaults),
        wallets=tuple(map(wallet, details.wallets)),
        settlement=_settlement(record.settlement),
        kyc=KycView(status=record.kyc_status),
        capabilities=_statuses(details),
        labels=record.labels,
        metadata=record.metadata,
        createdAt=format_iso(record.created_at_ms),
        updatedAt=format_iso(record.updated_at_ms),
    )


def capabilities(account_id: str, found: Iterable[Capability]) -> CapabilitiesView:
    """Which bank flows the account may use."""
    return CapabilitiesView(
        accountId=account_id,
        capabilities={item.name: _capability(account_id, item) for item in found},
    )


def requirements(item: Capability) -> RequirementsView:
    """What a capability waits for."""
    return RequirementsView(missing=item.missing, pending=item.pending, complete=item.complete)


def balances(account_id: str, holdings: tuple[Holding, ...]) -> BalancesView:
    """What an account's vaults hold."""
    return BalancesView(accountId=account_id, balances=tuple(map(_balance, holdings)))


def _settlement(settlement: Settlement | None) -> SettlementView | None:
    if settlement is None:
        return None
    return SettlementView(chainId=settlement.chain_id, assetSymbol=settlement.asset_symbol)


def _vault(vault: Vault) -> VaultView:
    return VaultView(
        vaultId=vault.id, chainId=vault.chain_id, address=vault.address, status=vault.status
    )


def _capability(account_id: str, item: Capability) -> CapabilityView:
    return CapabilityView(
        status=item.status,
        requirements=requirements(item),
        actions=actions_of_capability(account_id, item),
    )


def _statuses(details: AccountDetails) -> dict[str, CapabilityStatus]:
    statuses: dict[str, CapabilityStatus] = dict.fromkeys(CAPABILITIES, "inactive")
    return statuses | {item.capability: item.status for item in details.activations}


def _balance(holding: Holding) -> BalanceView:
    asset = holding.asset
    return BalanceView(
        chainId=asset.chain_id,
        assetSymbol=asset.symbol,
        tokenAddress=asset.address,
        decimals=asset.decimals,
        totalAtomic=str(holding.total_atomic),
        availableAtomic=str(holding.available_atomic),
        reservedAtomic=str(holding.reserved_atomic),
        available=format_amount(holding.available_atomic, asset.decimals),
    )
