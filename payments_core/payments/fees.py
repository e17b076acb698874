"""The recipient's fee: the one place where it is computed (contract §6 "Fees")."""

from __future__ import annotations

ONE_IN_BPS = 10_000
"""The whole, in basis points."""


def compute_fee(amount_atomic: int, fee_bps: int) -> int:
    """The fee on an amount, in the asset's smallest units, rounded down."""
    return amount_atomic * fee_bps // ONE_IN_BPS


def deduct_fee(amount_atomic: int, fee_bps: int) -> int:
    """What is left of an amount for its recipient."""
    return amount_atomic - compute_fee(amount_atomic, fee_bps)
