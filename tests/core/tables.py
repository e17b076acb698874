"""The transition tables of the contract, section 6, written down apart from the code.

A row is (from, trigger, to, event, label); NEW is before the creation.
Whatever is not here is refused.
"""

from __future__ import annotations

Row = tuple[str, str, str, str | None, str | None]

NEW = "none"


def each(sources: str, trigger: str, target: str, event: str | None, label: str | None) -> set[Row]:
    """One row for every source; a target of "=" stays where it was."""
    return {
        (source, trigger, source if target == "=" else target, event, label)
        for source in sources.split()
    }


LATER = "accepted executing succeeded partially_refunded action_required refunded"

PAYMENT: set[Row] = {
    (NEW, "create", "awaiting_payment", "payment.created", None),
    ("awaiting_payment", "attempt", "processing", "payment.processing", None),
    ("processing", "attempt_ended", "awaiting_payment", None, None),
    ("accepted", "release", "executing", "payment.executing", None),
    ("executing", "settle", "succeeded", "payment.succeeded", None),
    (
        "executing", "release_failed", "action_required",
        "payment.action_required", "execution_failed",
    ),
    ("awaiting_payment", "expire", "expired", "payment.expired", None),
    (
        "awaiting_payment", "expire_short", "action_required",
        "payment.action_required", "underpaid",
    ),
    ("action_required", "further_receipt", "action_required", "payment.late", "late"),
    ("action_required", "reconcile_accept", "accepted", "payment.reconciled", None),
    ("action_required", "retry_execution", "executing", "payment.reconciled", None),
    ("action_required", "reconcile_refund", "refunded", "payment.reconciled", None),
    ("action_required", "write_off", "failed", "payment.reconciled", None),
    ("succeeded", "payout_returned", "action_required", "payment.action_required", "returned"),
    ("accepted", "reorged", "action_required", "payment.action_required", "reorged"),
    ("action_required", "refund_part", "action_required", "payment.refunded", None),
    *each("awaiting_payment processing", "covered", "accepted", "payment.accepted", None),
    *each(
        "awaiting_payment processing", "short", "awaiting_payment",
        "payment.underpaid", "underpaid",
    ),
    *each("awaiting_payment processing", "cancel", "cancelled", "payment.cancelled", None),
    *each(
        "expired cancelled", "late_receipt", "action_required", "payment.action_required", "late"
    ),
    *each("expired cancelled", "receipt_after_window", "=", "payment.late", "late"),
    *each(LATER, "overpaid", "=", "payment.overpaid", "overpaid"),
    *each(LATER, "duplicate", "=", "payment.overpaid", "duplicate"),
    *each(
        "succeeded partially_refunded", "refund_part", "partially_refunded",
        "payment.refunded", None,
    ),
    *each(
        "succeeded partially_refunded action_required", "refund_all", "refunded",
        "payment.refunded", None,
    ),
    *each(LATER, "refund_excess", "=", "payment.reconciled", None),
    *each(
        "executing succeeded partially_refunded refunded action_required", "reorged", "=",
        "payment.reorged", "reorged",
    ),
}  # fmt: skip

OPTION: set[Row] = {
    (NEW, "create", "creating", None, None),
    (NEW, "offer", "pending", None, None),
    ("creating", "offer", "pending", None, None),
    ("creating", "fail", "failed", None, None),
    ("pending", "fund", "processing", None, None),
    ("pending", "expire", "expired", None, None),
    ("pending", "cancel", "cancelled", None, None),
    ("pending", "fail", "failed", None, None),
    ("processing", "verify", "succeeded", None, None),
    ("processing", "fail", "failed", None, None),
    ("processing", "expire", "expired", None, None),
    ("processing", "reopen", "pending", None, None),
}

SELECTION: set[Row] = {
    (NEW, "select", "selected", None, None),
    ("selected", "supersede", "superseded", None, None),
}

FUNDING_OPERATION: set[Row] = {
    (NEW, "create", "awaiting_authorization", None, None),
    (
        "awaiting_authorization", "authorize", "authorized",
        "vault_funding.authorized", None,
    ),
    ("authorized", "broadcast", "broadcast", "vault_funding.broadcast", None),
    ("broadcast", "confirm", "confirmed", "vault_funding.confirmed", None),
    ("broadcast", "reorg", "authorized", None, None),
    ("unknown", "broadcast", "broadcast", None, None),
    ("unknown", "confirm", "confirmed", "vault_funding.confirmed", None),
    ("unknown", "reorg", "authorized", None, None),
    *each("awaiting_authorization authorized", "expire", "expired", None, None),
    *each("awaiting_authorization authorized", "cancel", "cancelled", None, None),
    *each("authorized broadcast unknown", "fail", "failed", "vault_funding.failed", None),
    *each("authorized broadcast", "lose", "unknown", None, None),
}  # fmt: skip

TERMINAL = {
    "payment": {"failed"},
    "payment option": {"succeeded", "expired", "failed", "cancelled"},
    "option selection": {"superseded"},
    "vault funding operation": {"confirmed", "expired", "cancelled", "failed"},
}
