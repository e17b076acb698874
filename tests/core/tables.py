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


OPEN = "awaiting_payment processing"
RELEASE_SENT = "executing succeeded partially_refunded refunded"
LATER = "accepted executing succeeded partially_refunded action_required refunded"
CLOSED = "expired cancelled"
CLOSED_OR_FAILED = "expired cancelled failed"

PAYMENT: set[Row] = {
    (NEW, "create", "awaiting_payment", "payment.created", None),
    (NEW, "create_drawn", "processing", "payment.created", None),
    ("awaiting_payment", "attempt", "processing", "payment.processing", None),
    ("processing", "attempt_ended", "awaiting_payment", None, None),
    ("processing", "short_and_pending", "processing", "payment.underpaid", "underpaid"),
    ("processing", "submit", "executing", "payment.executing", None),
    (
        "processing", "draw_failed", "action_required",
        "payment.action_required", "execution_failed",
    ),
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
    *each("accepted processing executing", "hold", "=", "payment.in_review", "in_review"),
    *each("accepted processing executing", "pass", "=", None, None),
    *each(
        "accepted processing executing", "block", "action_required",
        "payment.action_required", "blocked",
    ),
    ("succeeded", "payout_returned", "action_required", "payment.action_required", "returned"),
    ("accepted", "cover_reorged", "action_required", "payment.action_required", "reorged"),
    ("executing", "cover_reorged", "action_required", "payment.action_required", "reorged"),
    *each(OPEN, "covered", "accepted", "payment.accepted", None),
    *each(OPEN, "short", "awaiting_payment", "payment.underpaid", "underpaid"),
    *each(OPEN, "cancel", "cancelled", "payment.cancelled", None),
    *each(CLOSED, "late_receipt", "action_required", "payment.action_required", "late"),
    *each(CLOSED_OR_FAILED, "receipt_after_window", "=", "payment.late", "late"),
    *each(f"{LATER} {CLOSED_OR_FAILED}", "overpaid", "=", "payment.overpaid", "overpaid"),
    *each(f"{LATER} {CLOSED_OR_FAILED}", "duplicate", "=", "payment.overpaid", "duplicate"),
    ("accepted", "completed", "accepted", "payment.accepted", None),
    *each(f"{LATER} {CLOSED_OR_FAILED}", "missed_release", "=", "payment.late", "late"),
    *each(f"{OPEN} {LATER} {CLOSED_OR_FAILED}", "receipt_reorged", "=", "payment.reorged",
          "reorged"),
    *each(f"processing {RELEASE_SENT} action_required failed", "funds_returned", "=",
          "payment.late", "returned"),
    *each(f"processing {RELEASE_SENT} action_required failed", "return_reorged", "=",
          "payment.reorged", None),
    *each(f"accepted {RELEASE_SENT}", "receipt_returned", "=",
          "payment.reorged", None),
    *each(f"{OPEN} {LATER} {CLOSED_OR_FAILED}", "misdirected", "=", "payment.misdirected",
          "misdirected"),
    *each(f"{OPEN} {LATER} {CLOSED_OR_FAILED}", "misdirected_reorged", "=",
          "payment.reorged", None),
    *each(f"{OPEN} {LATER} {CLOSED_OR_FAILED}", "return_misdirected", "=",
          "payment.reconciled", None),
    *each(CLOSED_OR_FAILED, "reconcile_refund", "=", "payment.reconciled", None),
    *each(f"{LATER} {CLOSED_OR_FAILED}", "refund_excess", "=", "payment.reconciled", None),
    *each(
        "succeeded partially_refunded", "refund_part", "partially_refunded",
        "payment.refunded", None,
    ),
    *each(
        f"action_required refunded {CLOSED_OR_FAILED}", "refund_part", "=",
        "payment.refunded", None,
    ),
    *each(
        "succeeded partially_refunded action_required", "refund_all", "refunded",
        "payment.refunded", None,
    ),
    *each(
        "succeeded partially_refunded refunded", "release_reorged", "action_required",
        "payment.action_required", "reorged",
    ),
    *each(
        f"accepted executing succeeded action_required {CLOSED_OR_FAILED}", "refund_reorged", "=",
        "payment.reorged", "reorged",
    ),
    *each(
        "executing succeeded refunded action_required failed", "offramp_reorged", "=",
        "payment.reorged", "reorged",
    ),
    (
        "refunded", "refund_reorged_held", "action_required",
        "payment.action_required", "reorged",
    ),
    *each(
        "partially_refunded refunded", "refund_reorged_partly", "partially_refunded",
        "payment.reorged", "reorged",
    ),
    *each(
        "partially_refunded refunded", "refund_reorged_wholly", "succeeded",
        "payment.reorged", "reorged",
    ),
}  # fmt: skip

PAYOUT: set[Row] = {
    (NEW, "create", "created", None, None),
    ("created", "submit", "submitted", None, None),
    ("created", "fail", "failed", None, None),
    ("created", "cancel", "cancelled", None, None),
    ("submitted", "settle", "settled", None, None),
    *each("submitted settled", "return", "returned", None, None),
}

RECEIPT: set[Row] = {
    (NEW, "observe", "observed", None, None),
    ("observed", "verify", "verified", None, None),
    *each("observed reorged", "reject", "rejected", None, None),
    ("reorged", "observe", "observed", None, None),
    *each("observed verified rejected", "reorg", "reorged", None, None),
}

SENDING_BACK: set[Row] = {
    (NEW, "create", "created", None, None),
    ("created", "submit", "submitted", None, None),
    ("created", "withdraw", "failed", None, None),
    ("created", "hold", "created", None, None),
    ("created", "pass", "created", None, None),
    ("created", "block", "failed", None, None),
    ("submitted", "continue", "created", None, None),
    ("submitted", "confirm", "succeeded", None, None),
    ("submitted", "fail", "failed", None, None),
    ("succeeded", "reorg", "failed", None, None),
}

REFUND: set[Row] = {
    (NEW, "create", "created", "refund.created", None),
    ("created", "submit", "submitted", None, None),
    ("created", "withdraw", "failed", "refund.failed", None),
    ("created", "hold", "created", "payment.in_review", None),
    ("created", "pass", "created", None, None),
    ("created", "block", "failed", "refund.failed", None),
    ("submitted", "confirm", "succeeded", "refund.succeeded", None),
    ("submitted", "fail", "failed", "refund.failed", None),
    ("succeeded", "reorg", "failed", "refund.failed", None),
}

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
    ("unknown", "broadcast", "broadcast", "vault_funding.broadcast", None),
    ("unknown", "confirm", "confirmed", "vault_funding.confirmed", None),
    ("unknown", "reorg", "authorized", None, None),
    *each("awaiting_authorization authorized", "expire", "expired", None, None),
    *each("awaiting_authorization authorized", "cancel", "cancelled", None, None),
    *each("authorized broadcast unknown", "fail", "failed", "vault_funding.failed", None),
    *each("authorized broadcast", "lose", "unknown", None, None),
}  # fmt: skip

DISPUTE: set[Row] = {
    (NEW, "flag", "flagged", "dispute.flagged", None),
    ("flagged", "resolve", "resolved", "dispute.resolved", None),
}

MANDATE: set[Row] = {
    (NEW, "create", "active", None, None),
    ("active", "collect", "active", None, None),
    ("active", "expire", "expired", None, None),
    *each("active expired", "revoke", "revoked", None, None),
}

KYC: set[Row] = {
    (NEW, "create", "not_started", None, None),
    ("pending", "approve", "approved", "account.updated", None),
    ("pending", "reject", "rejected", "account.updated", None),
    *each("not_started rejected", "start", "pending", "account.updated", None),
}

CAPABILITY: set[Row] = {
    (NEW, "create", "inactive", None, None),
    *each(
        "inactive rejected", "activate", "action_required", "account.capability_updated", None
    ),
    *each(
        "inactive rejected action_required", "request", "pending", "account.capability_updated",
        None,
    ),
    ("pending", "approve", "active", "account.capability_updated", None),
    ("pending", "reject", "rejected", "account.capability_updated", None),
    ("pending", "withhold", "suspended", "account.capability_updated", None),
    ("active", "suspend", "suspended", "account.capability_updated", None),
    ("suspended", "resume", "active", "account.capability_updated", None),
}  # fmt: skip

BANK_ACCOUNT: set[Row] = {
    (NEW, "create", "pending", "bank_account.created", None),
    ("pending", "approve", "active", "bank_account.updated", None),
    ("pending", "reject", "rejected", "bank_account.updated", None),
}

BANK_TRANSACTION: set[Row] = {
    (NEW, "schedule", "scheduled", "bank_funding.scheduled", None),
    (NEW, "receive", "received", "bank_funding.received", None),
    ("scheduled", "receive", "received", "bank_funding.received", None),
    ("in_review", "receive", "received", "bank_funding.received", None),
    (NEW, "review", "in_review", "bank_funding.in_review", None),
    ("scheduled", "review", "in_review", "bank_funding.in_review", None),
    ("received", "review", "in_review", "bank_funding.in_review", None),
    ("received", "submit", "submitted", "bank_funding.submitted", None),
    ("submitted", "settle", "settled", "bank_funding.settled", None),
    ("submitted", "fail_credit", "in_review", "bank_funding.in_review", None),
    ("settled", "reverse_credit", "in_review", "bank_funding.in_review", None),
    (NEW, "refund", "refunded", "bank_funding.refunded", None),
    ("scheduled", "refund", "refunded", "bank_funding.refunded", None),
    ("in_review", "refund", "refunded", "bank_funding.refunded", None),
    ("received", "refund", "refunded", "bank_funding.refunded", None),
    (NEW, "fail", "failed", "bank_funding.failed", None),
    ("scheduled", "fail", "failed", "bank_funding.failed", None),
    ("in_review", "fail", "failed", "bank_funding.failed", None),
}

DEPOSIT: set[Row] = {
    (NEW, "detect", "detected", "deposit.detected", None),
    ("detected", "confirm", "confirmed", "deposit.confirmed", None),
    ("confirmed", "settle", "settled", "deposit.settled", None),
    ("confirmed", "fail", "failed", "deposit.failed", None),
    ("settled", "sweep_reorged", "failed", "deposit.failed", None),
    ("failed", "return", "detected", "deposit.detected", None),
    ("failed", "retry", "confirmed", "deposit.confirmed", None),
    ("detected", "reject", "rejected", "deposit.misdirected", None),
    ("rejected", "return_succeeded", "rejected", "deposit.returned", None),
    ("rejected", "return_failed", "rejected", "deposit.misdirected", None),
    *each("detected confirmed rejected", "reorg", "failed", "deposit.failed", None),
}

ROLE_MODULE: set[Row] = {
    *each(f"{NEW} failed", "deploy", "deploying", None, None),
    *each(f"{NEW} failed", "enable", "enabling", None, None),
    ("deploying", "deployed", "enabling", None, None),
    ("enabling", "enabled", "active", None, None),
    *each("deploying enabling", "fail", "failed", None, None),
    *each("enabling active", "undo", "failed", None, None),
}

TERMINAL = {
    "role module": set(),
    "deposit": set(),
    "dispute": {"resolved"},
    "payment": {"failed"},
    "receipt": set(),
    "refund": {"failed"},
    "return of misdirected funds": {"failed"},
    "payment option": {"succeeded", "expired", "failed", "cancelled"},
    "option selection": {"superseded"},
    "vault funding operation": {"confirmed", "expired", "cancelled", "failed"},
    "mandate": {"revoked"},
    "verification": {"approved"},
    "capability": set(),
    "bank account": {"active", "rejected"},
    "payout": {"failed", "cancelled", "returned"},
    "bank transaction": {"refunded", "failed"},
}
