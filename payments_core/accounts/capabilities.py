"""What of the regulated bank flows an account may use (contract §7).

Bank flows need a bank behind a port, and there is none yet: every capability is inactive and
says what it waits for.
"""

from __future__ import annotations

from typing import Literal

import attrs

from payments_core.accounts.record import Account

CapabilityStatus = Literal[
    "inactive", "action_required", "pending", "active", "rejected", "suspended"
]

CAPABILITIES = ("us_bank_payout", "us_bank_funding")

KYC = "kyc"
BANK_PROVIDER = "bank_provider"


@attrs.frozen(kw_only=True)
class Capability:
    """One capability, and which of its requirements are missing, under way and met."""

    name: str
    status: CapabilityStatus
    missing: tuple[str, ...] = ()
    pending: tuple[str, ...] = ()
    complete: tuple[str, ...] = ()


def capabilities_of(account: Account) -> tuple[Capability, ...]:
    """Every capability with its state for this account."""
    pending = (KYC,) if account.kyc_status == "pending" else ()
    complete = (KYC,) if account.kyc_status == "approved" else ()
    missing = (*(() if pending or complete else (KYC,)), BANK_PROVIDER)
    return tuple(
        Capability(
            name=name, status="inactive", missing=missing, pending=pending, complete=complete
        )
        for name in CAPABILITIES
    )
