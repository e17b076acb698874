"""What a payer must know about a Payment: its stage, and anything unusual.

A stage is coarser than a status in some places and finer in others: to a payer, a Payment whose
release is in progress is paid, and a late Payment differs from a short one.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, get_args

from payments_core.clock import Instant
from payments_core.payments.options.methods import METHODS
from payments_core.payments.record import Payment
from payments_core.payments.transitions import CLOSED_EMPTY, OPEN

Stage = Literal[
    "waiting",
    "part_paid",
    "ending",
    "processing",
    "received",
    "paid",
    "expired",
    "cancelled",
    "late",
    "short",
    "reversed",
    "undelivered",
    "attention",
    "partially_refunded",
    "refunded",
    "failed",
]
STAGES: tuple[Stage, ...] = get_args(Stage)

Notice = Literal[
    "submitted",
    "misdirected",
    "from_contract",
    "overpaid",
    "duplicate",
    "refunding",
    "refunded",
    "reorged",
]
NOTICES: tuple[Notice, ...] = get_args(Notice)

_STAGES_BY_STATUS: Mapping[str, Stage] = {
    "awaiting_payment": "waiting",
    "processing": "processing",
    "accepted": "received",
    "executing": "received",
    "succeeded": "paid",
    "partially_refunded": "partially_refunded",
    "refunded": "refunded",
    "expired": "expired",
    "cancelled": "cancelled",
    "failed": "failed",
    "action_required": "attention",
}

_STAGES_BY_LABEL: tuple[tuple[str, Stage], ...] = (
    ("reorged", "reversed"),
    ("execution_failed", "undelivered"),
    ("returned", "undelivered"),
    ("late", "late"),
    ("underpaid", "short"),
)
"""Why a partner must decide; labels accumulate, and the first of these that is set decides."""

_SHOWN_REFUNDED: tuple[Stage, ...] = ("partially_refunded", "refunded")


def find_stage(payment: Payment, *, now: Instant) -> Stage:
    """The stage of the Payment, as the payer must see it now."""
    if payment.status == "awaiting_payment":
        if now >= payment.expires_at_ms:
            return "ending"
        return "part_paid" if payment.received_atomic else "waiting"
    if payment.status == "action_required":
        labels = (stage for label, stage in _STAGES_BY_LABEL if label in payment.labels)
        return next(labels, "attention")
    if payment.status in CLOSED_EMPTY and payment.received_atomic:
        return "late"
    return _STAGES_BY_STATUS[payment.status]


def list_notices(
    payment: Payment, *, is_submitted: bool = False, is_from_contract: bool = False
) -> tuple[Notice, ...]:
    """Further notices for the payer, besides the stage.

    `is_submitted` means that the payer has named a transfer that is in no block yet, and
    `is_from_contract` that a contract has paid, such as an exchange's.
    """
    stage = _STAGES_BY_STATUS[payment.status]
    found: dict[Notice, bool] = {
        "submitted": is_submitted and payment.status in OPEN,
        "misdirected": payment.misdirected > 0,
        "from_contract": is_from_contract,
        "duplicate": payment.excess_atomic > 0 and "duplicate" in payment.labels,
        "overpaid": payment.excess_atomic > 0 and "duplicate" not in payment.labels,
        "refunding": bool(payment.refunding),
        "refunded": payment.refunded_atomic > 0 and stage not in _SHOWN_REFUNDED,
        "reorged": "reorged" in payment.labels and payment.status in OPEN,
    }
    return tuple(notice for notice, holds in found.items() if holds)


def compute_due(payment: Payment, pending_amount: int, *, now: Instant) -> int:
    """The atomic amount that a payer without an account should pay now; 0 if none should come.

    Amounts already on their way are not asked for again, nor those that a vault has authorized.
    """
    is_payable = (
        payment.status in OPEN
        and now < payment.expires_at_ms
        and payment.intent == "receive"
        and payment.escrow_address is not None
        and any(METHODS[method].created_by == "secret_holder" for method in payment.allowed_methods)
        and not payment.authorized
    )
    if not is_payable:
        return 0
    return max(0, payment.remaining.amount_atomic - pending_amount)
