"""The requirements of a capability, derived from the account and its activation: pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import attrs

from payments_core.accounts.capabilities.record import (
    CAPABILITIES,
    CapabilityActivation,
    CapabilityStatus,
)
from payments_core.accounts.record import Account
from payments_core.banks.reviews import BankCapability
from payments_core.brief_repr import brief_repr

KYC = "kyc"
"""The account's verification: `POST /v2/accounts/{accountId}/verifications`."""

ACTIVATION = "activation"
"""The request for it: `POST /v2/accounts/{accountId}/capability-activations`."""

BANK_REVIEW = "bank_review"
"""The bank's decision; the activation's `hostedUrl` is where the user supplies what it requires."""

BANK_PROVIDER = "bank_provider"
"""A bank, which the deployment lacks."""

ACCOUNT_ACTIVE = "account_active"
"""The account's own status, which suspends its capabilities with it."""


@attrs.frozen(kw_only=True)
class Capability:
    """One capability, and which of its requirements are missing, in progress and met.

    `hosted_url` is where the user supplies what the bank requires, while it does.

    >>> [(found.name, found.status) for found in shop.accounts.read_capabilities(bob.id)]
    [('us_bank_payout', 'active'), ('us_bank_funding', 'inactive')]
    """

    __repr__ = brief_repr

    name: BankCapability
    status: CapabilityStatus
    hosted_url: str | None = attrs.field(default=None, repr=False)
    missing: tuple[str, ...] = ()
    pending: tuple[str, ...] = ()
    complete: tuple[str, ...] = ()


def capabilities_of(
    account: Account,
    activations: Sequence[CapabilityActivation],
    *,
    offered: Collection[BankCapability],
) -> tuple[Capability, ...]:
    """Every capability with its state for this account; `offered` are those that a bank offers."""
    known = {activation.capability: activation for activation in activations}
    return tuple(
        describe_capability(account, name, known.get(name), is_offered=name in offered)
        for name in CAPABILITIES
    )


def describe_capability(
    account: Account,
    name: BankCapability,
    activation: CapabilityActivation | None,
    *,
    is_offered: bool,
) -> Capability:
    """One capability with its requirements, in the order in which they are met."""
    status = activation.status if activation else "inactive"
    groups = {KYC: _KYC_GROUPS.get(account.kyc_status, "missing")}
    if not is_offered:
        groups[BANK_PROVIDER] = "missing"
    else:
        groups[ACTIVATION] = "complete" if activation else "missing"
        groups[BANK_REVIEW] = _REVIEW_GROUPS.get(status, "missing")
    if status == "suspended":
        groups[ACCOUNT_ACTIVE] = "missing"
    found = {
        group: tuple(requirement for requirement, of in groups.items() if of == group)
        for group in ("missing", "pending", "complete")
    }
    hosted_url = activation.hosted_url if activation else None
    return Capability(name=name, status=status, hosted_url=hosted_url, **found)


_KYC_GROUPS = {"pending": "pending", "approved": "complete"}
_REVIEW_GROUPS = {"pending": "pending", "active": "complete", "suspended": "complete"}
