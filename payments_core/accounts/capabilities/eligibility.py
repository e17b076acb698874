"""Whether an account may use a bank flow now: its status, the product, the active capability."""

from __future__ import annotations

import attrs

from payments_core.accounts.capabilities.operations import load_activation
from payments_core.accounts.capabilities.record import (
    PRODUCT_OF_CAPABILITY,
    CapabilityActivation,
)
from payments_core.accounts.record import Account
from payments_core.accounts.vaults.of_account import find_vaults
from payments_core.accounts.vaults.record import Vault
from payments_core.banks.reviews import BankCapability
from payments_core.engine.decision import lock_shared
from payments_core.errors import CapabilityNotActive, NotFound
from payments_core.storage.port import Snapshot, Transaction
from payments_core.tenants.authorization import Authority


@attrs.frozen
class Eligibility:
    """Why an account may not use a bank flow, and the vaults that it may use it with.

    A reason is `account_suspended`, `account_closed`, `entitlement_required` or
    `capability_not_active`. There are no vaults while there are reasons.
    """

    reasons: tuple[str, ...]
    vaults: tuple[Vault, ...]


def load_eligibility(
    snapshot: Snapshot, authority: Authority, account_id: str, capability: BankCapability
) -> Eligibility:
    """Whether the account may use the capability. Raises NotFound.

    It is for display: an activation that cannot be read counts as missing, and a vault that
    cannot be read is not listed, each with an alarm.
    """
    account = snapshot.get(Account, account_id)
    if account is None:
        raise NotFound("account")
    activation = load_activation(snapshot, account_id, capability, skip_damaged=True)
    # A suspended capability follows its account, whose status is already a reason.
    is_active = activation is not None and activation.status in ("active", "suspended")
    is_entitled = PRODUCT_OF_CAPABILITY[capability] in authority.environment.products
    reasons = (
        *(() if account.status == "active" else (f"account_{account.status}",)),
        *(() if is_entitled else ("entitlement_required",)),
        *(() if is_active else ("capability_not_active",)),
    )
    if reasons:
        return Eligibility(reasons, ())
    return Eligibility((), find_vaults(snapshot, account_id, skip_damaged=True))


def lock_capability(tx: Transaction, activation_id: str | None, capability: BankCapability) -> None:
    """Hold the activation, which must be active at the commit. Raises CapabilityNotActive."""
    activation = activation_id and lock_shared(tx, CapabilityActivation, activation_id)
    if not activation or activation.status != "active":
        raise CapabilityNotActive(capability)
