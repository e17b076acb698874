"""The events of a Payment. Pure."""

from __future__ import annotations

from typing import Any

from payments_core.clock import format_iso
from payments_core.engine.events import BY_NAME, NewEvent
from payments_core.payments.receipts.progress import ReceiptProgress
from payments_core.payments.record import Payment


def build_event(name: str, payment: Payment, **more: Any) -> NewEvent:
    """The event with the fields that the catalogue has for it; `more` replaces the Payment's."""
    known = {
        **identify(payment),
        **describe_progress(None),
        "refundId": None,
        "status": payment.status,
        "labels": list(payment.labels),
        "amountAtomic": str(payment.amount_atomic),
        "receivedAmountAtomic": str(payment.received_atomic),
        "excessAmountAtomic": str(payment.excess_atomic),
        "settledAmountAtomic": str(payment.settled_atomic),
        "refundedAmountAtomic": str(payment.refunded_atomic),
        "returnedAmountAtomic": str(payment.returned_atomic),
        **more,
    }
    payload = {field: known[field] for field in BY_NAME[name].fields}
    return NewEvent(
        name, payload, payment.api_version, payment.account_id, payment.external_user_id
    )


def describe_progress(progress: ReceiptProgress | None) -> dict[str, Any]:
    """The fields that say how far a transfer is; null if no transfer is known."""
    if progress is None:
        return dict.fromkeys(("receiptId", "confirmations", "required", "estimatedAt"))
    at_ms = progress.estimated_at_ms
    return {
        "receiptId": progress.receipt_id,
        "confirmations": progress.confirmations,
        "required": progress.required,
        "estimatedAt": None if at_ms is None else format_iso(at_ms),
    }


def identify(payment: Payment) -> dict[str, Any]:
    """The fields of an event that say which Payment it is about.

    A stranger who creates a Payment could write the reference of somebody's order. Nobody knows who
    wrote that of a Payment without a creator, nor its metadata.
    """
    is_known = payment.created_by in ("server", "client")
    return {
        "paymentId": payment.id,
        "accountId": payment.account_id,
        "assetSymbol": payment.asset_symbol,
        "chainId": payment.chain_id,
        "createdBy": payment.created_by,
        "statusVersion": payment.status_version,
        "reference": payment.reference if is_known else None,
        "externalUserId": payment.external_user_id,
        "metadata": payment.metadata if is_known else None,
    }
