"""Role modules as v1 returns them (contract §10)."""

from __future__ import annotations

from collections.abc import Mapping

from payments_core.legacy.role_modules.record import RoleModuleInstallation
from payments_core.legacy.transactions.translation import TransactionStatus
from payments_core_http.v1.envelope import Success
from payments_core_http.wire.classes import frozen_view

_STATUSES: Mapping[str, TransactionStatus] = {
    "deploying": "pending",
    "enabling": "processing",
    "active": "completed",
    "failed": "failed",
}


@frozen_view
class RoleModuleView:
    """A vault's role module. `txHash` is the newest transaction for it, once it was sent."""

    vaultAddress: str
    roleModuleAddress: str
    """The address of the role module."""
    txHash: str | None
    status: TransactionStatus


@frozen_view
class RoleModuleResponse(Success):
    """A vault's role module."""

    data: RoleModuleView
    """The vault's role module."""


def role_module(installation: RoleModuleInstallation) -> RoleModuleView:
    """A vault's role module and its state."""
    return RoleModuleView(
        vaultAddress=installation.vault_address,
        roleModuleAddress=installation.module_address,
        txHash=installation.transaction_hash,
        status=_STATUSES[installation.status],
    )
