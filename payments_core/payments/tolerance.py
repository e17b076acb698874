"""The tolerance of a Payment: how much less than its amount covers it (contract §6)."""

from __future__ import annotations

from payments_core.payments.fees import ONE_IN_BPS


def compute_required(amount_atomic: int, tolerance_bps: int) -> int:
    """The atomic amount from which a Payment of that amount counts as covered."""
    return amount_atomic - amount_atomic * tolerance_bps // ONE_IN_BPS
