"""Verifications as v2 returns them."""

from __future__ import annotations

import attrs

from payments_core.accounts.record import KycStatus
from payments_core.accounts.verification.record import Verification
from payments_core.clock import format_iso
from payments_core_http.wire.classes import frozen_view


@frozen_view
class VerificationView:
    """A verification; the URL is present while the user can still use it."""

    id: str
    verificationId: str
    """The verification's id."""
    accountId: str
    status: KycStatus
    hostedUrl: str | None = attrs.field(repr=False)
    createdAt: str
    updatedAt: str


def verification(record: Verification) -> VerificationView:
    """A verification (contract §5)."""
    return VerificationView(
        id=record.id,
        verificationId=record.id,
        accountId=record.account_id,
        status=record.status,
        hostedUrl=record.hosted_url,
        createdAt=format_iso(record.created_at_ms),
        updatedAt=format_iso(record.updated_at_ms),
    )
