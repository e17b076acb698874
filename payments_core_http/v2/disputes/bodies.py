"""Disputes about sessions."""

from __future__ import annotations

from typing import Literal

import attrs

from payments_core.payments.disputes.operations import (
    DisputeDescription,
    DisputeNote,
    DisputeReason,
)


@attrs.frozen(kw_only=True)
class FlagDispute:
    """Why a settled session is disputed."""

    reason: DisputeReason
    description: DisputeDescription | None = None


@attrs.frozen(kw_only=True)
class ResolveDispute:
    """How a dispute ended."""

    resolution: Literal["won", "lost", "withdrawn"]
    note: DisputeNote | None = None
