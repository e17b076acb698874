"""Disputes about sessions."""

from __future__ import annotations

from typing import Literal

from payments_core.payments.disputes.operations import (
    DisputeDescription,
    DisputeNote,
    DisputeReason,
)
from payments_core_http.wire.classes import frozen_body


@frozen_body
class FlagDispute:
    """Why a settled session is disputed."""

    reason: DisputeReason
    """What is disputed."""
    description: DisputeDescription | None = None
    """Your text about it."""


@frozen_body
class ResolveDispute:
    """How a dispute ended."""

    resolution: Literal["won", "lost", "withdrawn"]
    """How it was resolved."""
    note: DisputeNote | None = None
    """Your note."""
