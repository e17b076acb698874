"""Role modules as v1 gives them out (contract §10)."""

from __future__ import annotations

from collections.abc import Mapping

import attrs

from payments_core.legacy.role_modules.record import RoleModuleInstallation
from payments_core.legacy.transactions.translation import TransactionStatus
from payments_core_http.v1.envelope import Success

_STATUSES: Mapping[str, TransactionStatus] = {
    "deploying": "pending",
    "enabling": "processing",
    "active": "completed",
    "failed": "failed",
}


@attrs.frozen(kw_only=True, slots=False)
class RoleModuleView:
    """A vault's role module. `txHash` is of the newest transaction for it, once it was sent."""

    vaultAddress: str
    roleModuleAddress: str
    txHash: str | None
    status: TransactionStatus


@attrs.frozen(kw_only=True, slots=False)
class RoleModuleAnswer(Success):
    """A vault's role module."""

    data: RoleModuleView


def role_module(installation: RoleModuleInstallation) -> RoleModuleView:
    """A vault's role module, and how far it is."""
    return RoleModuleView(
        vaultAddress=installation.vault_address,
        roleModuleAddress=installation.module_address,
        txHash=installation.transaction_hash,
        status=_STATUSES[installation.status],
    )
