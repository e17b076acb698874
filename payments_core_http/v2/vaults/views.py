"""Vaults, policies, mandates and yield settings as v2 returns them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from payments_core.accounts.vaults.policies import VaultPolicy
from payments_core.accounts.vaults.provisioning import ProvisionedVault
from payments_core.accounts.vaults.record import (
    AllowedDestination,
    PolicyStatus,
    Vault,
    VaultStatus,
)
from payments_core.accounts.vaults.yields import VaultYield
from payments_core.clock import format_iso, format_iso_or_none
from payments_core.money import format_amount
from payments_core.payments.mandates.operations import MandateDetails
from payments_core.payments.mandates.record import Period
from payments_core_http.wire.classes import frozen_view


@frozen_view
class VaultDetailsView:
    """A vault on one chain, its account, and the policy that governs it."""

    id: str
    vaultId: str
    accountId: str
    chainId: int
    address: str
    """The vault's address."""
    status: VaultStatus
    """Whether it is deployed."""
    policyId: str
    createdAt: str
    updatedAt: str


@frozen_view
class AllowedWalletView:
    """An address that may be paid; a null `chainId` means any chain."""

    type: Literal["wallet"]
    address: str | None
    """The address that may be paid."""
    chainId: int | None
    """The chain on which it may be paid; null means any chain."""


@frozen_view
class AllowedAccountView:
    """An account that may be paid."""

    type: Literal["account"]
    accountId: str | None


@frozen_view
class PolicyView:
    """What a vault may be used for, in one version; null means no limit."""

    id: str
    policyId: str
    vaultId: str
    accountId: str
    version: int
    """The version; it rises at each change."""
    status: PolicyStatus
    perPaymentLimit: str | None
    dailyLimit: str | None
    allowedChains: tuple[int, ...] | None
    allowedAssets: tuple[str, ...] | None
    allowedDestinations: tuple[AllowedWalletView | AllowedAccountView, ...] | None
    createdAt: str
    updatedAt: str


@frozen_view
class YieldSettingsView:
    """Whether a vault's idle funds earn, and how."""

    vaultId: str
    accountId: str
    enabled: bool
    strategy: str | None
    createdAt: str
    updatedAt: str


@frozen_view
class MandateView:
    """A standing approval; `remainingAtomic` is of the current period."""

    id: str
    mandateId: str
    accountId: str
    vaultId: str
    chainId: int
    assetSymbol: str
    amountPerPeriod: str
    amountPerPeriodAtomic: str
    """The same in the asset's smallest unit."""
    period: Period
    remainingAtomic: str
    """What is left in the current period, in the smallest unit."""
    status: str
    reference: str | None
    metadata: Mapping[str, Any] | None
    expiresAt: str | None
    """When the approval ends; null if it does not end."""
    createdAt: str
    updatedAt: str
    revokedAt: str | None


def vault(record: Vault) -> VaultDetailsView:
    """A vault."""
    return VaultDetailsView(
        id=record.id,
        vaultId=record.id,
        accountId=record.account_id,
        chainId=record.chain_id,
        address=record.address,
        status=record.status,
        policyId=record.policy_id,
        createdAt=format_iso(record.created_at_ms),
        updatedAt=format_iso(record.updated_at_ms),
    )


def provisioned_vault(provisioned: ProvisionedVault) -> VaultDetailsView:
    """The response of a provisioning."""
    return vault(provisioned.vault)


def policy(found: VaultPolicy) -> PolicyView:
    """A policy in the requested version."""
    record = found.policy
    allowed = record.allowed_destinations
    return PolicyView(
        id=record.id,
        policyId=record.id,
        vaultId=found.vault.id,
        accountId=found.vault.account_id,
        version=record.policy_version,
        status=record.status,
        perPaymentLimit=record.per_payment_limit,
        dailyLimit=record.daily_limit,
        allowedChains=record.allowed_chains,
        allowedAssets=record.allowed_assets,
        allowedDestinations=None if allowed is None else tuple(map(_destination, allowed)),
        createdAt=format_iso(record.created_at_ms),
        updatedAt=format_iso(record.updated_at_ms),
    )


def yield_settings(found: VaultYield) -> YieldSettingsView:
    """A vault's yield settings."""
    settings = found.settings
    return YieldSettingsView(
        vaultId=found.vault.id,
        accountId=found.vault.account_id,
        enabled=settings.enabled,
        strategy=settings.strategy,
        createdAt=format_iso(settings.created_at_ms),
        updatedAt=format_iso(settings.updated_at_ms),
    )


def mandate(found: MandateDetails) -> MandateView:
    """A mandate in its current state."""
    record = found.mandate
    return MandateView(
        id=record.id,
        mandateId=record.id,
        accountId=record.account_id,
        vaultId=record.vault_id,
        chainId=record.chain_id,
        assetSymbol=record.asset_symbol,
        amountPerPeriod=format_amount(record.amount_per_period_atomic, record.asset.decimals),
        amountPerPeriodAtomic=str(record.amount_per_period_atomic),
        period=record.period,
        remainingAtomic=str(found.remaining_atomic),
        status=found.status,
        reference=record.reference,
        metadata=record.metadata,
        expiresAt=format_iso_or_none(record.expires_at_ms),
        createdAt=format_iso(record.created_at_ms),
        updatedAt=format_iso(record.updated_at_ms),
        revokedAt=format_iso_or_none(record.revoked_at_ms),
    )


def _destination(allowed: AllowedDestination) -> AllowedWalletView | AllowedAccountView:
    if allowed.type == "account":
        return AllowedAccountView(type="account", accountId=allowed.account_id)
    return AllowedWalletView(type="wallet", address=allowed.address, chainId=allowed.chain_id)
