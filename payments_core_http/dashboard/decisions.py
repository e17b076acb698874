"""An operator's decisions about a Payment: each is confirmed before it is made.

The page that asks for confirmation has the idempotency key in its form, so that a form that is sent
twice acts once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import UNSET

from payments_core.engine.idempotency.record import Response
from payments_core.errors import ReconciliationActionNotAllowed, ValidationFailed
from payments_core.payments.record import Payment
from payments_core.payments.refunding.operations import NewRefund
from payments_core.payments.refunding.reconciliation_rules import (
    RECONCILIATION_ACTIONS,
    SENDS_BACK,
    ReconciliationAction,
)
from payments_core.payments.refunds.plans import RefundLeg
from payments_core_http.calls import PageCall
from payments_core_http.dashboard.choices import require_choice
from payments_core_http.dashboard.rendering import redirect, render_page, run_form
from payments_core_http.dashboard.words import ACTION_WORDS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from payments_core.service import PaymentsService


def show_refund(service: PaymentsService, call: PageCall) -> Response:
    """The form of a refund; with an amount in the query, the confirmation of it."""
    id, new = call.path["paymentId"], _read_refund(call.query)
    planned = call.resources.payments.plan_refund(id, new)
    return render_page(
        call,
        "refund.html",
        section="payments",
        payment=planned.payment,
        planned=planned,
        given=new,
        is_reviewed=new.amount is not UNSET,
    )


def refund(service: PaymentsService, call: PageCall) -> Response:
    """The refund that was confirmed."""
    id, new = call.path["paymentId"], _read_refund(call.body)
    if new.amount is UNSET:  # what is confirmed is a fixed amount, not the current one
        raise ValidationFailed.at("amount", "is required")
    return run_form(
        call,
        lambda idempotent: call.resources.payments.refund(id, new, idempotency_key=idempotent),
        lambda _: redirect(call, f"/dashboard/payments/{id}", "refund"),
    )


def show_reconcile(service: PaymentsService, call: PageCall) -> Response:
    """A decision to be confirmed, with a note; it names what moves, and to whom."""
    id = call.path["paymentId"]
    action = require_choice(call.query, "action", RECONCILIATION_ACTIONS)
    details = call.resources.payments.read(id)
    allowed = call.resources.payments.list_allowed_actions(id)
    destination = call.query.get("destination", "").strip()
    legs = _plan(call, id, action, destination)
    receipt_id = call.query.get("receiptId")
    return render_page(
        call,
        "reconcile.html",
        section="payments",
        payment=details.payment,
        action=action,
        words=ACTION_WORDS[action],
        is_allowed=action in allowed,
        sends_back=action in SENDS_BACK,
        destination=destination,
        legs=legs,
        moved=_sum_moved(action, details.payment, legs),
        receipt=next((one for one in details.receipts if one.id == receipt_id), None),
    )


def _plan(
    call: PageCall, id: str, action: ReconciliationAction, destination: str
) -> Sequence[RefundLeg]:
    """What a decision sends back; empty if a destination must be named first."""
    try:
        return call.resources.payments.plan_action(id, action, destination=destination or None)
    except ReconciliationActionNotAllowed:
        return ()


def _sum_moved(action: ReconciliationAction, payment: Payment, legs: Sequence[RefundLeg]) -> int:
    """The amount that a decision moves, if it moves the Payment's own token."""
    if action == "accept":
        return payment.releasable_atomic
    if action == "retry_execution":
        return payment.amount_atomic if payment.intent == "send" else payment.releasable_atomic
    return sum(leg.amount_atomic for leg in legs)


def reconcile(service: PaymentsService, call: PageCall) -> Response:
    """The decision that was confirmed."""
    id = call.path["paymentId"]
    action = require_choice(call.body, "action", RECONCILIATION_ACTIONS)
    note, destination, receipt_id = (
        call.body.get(name, "").strip() or None for name in ("note", "destination", "receiptId")
    )
    return run_form(
        call,
        lambda idempotent: call.resources.payments.reconcile(
            id,
            action,
            destination=UNSET if destination is None else destination,
            receipt_id=receipt_id,
            note=note,
            idempotency_key=idempotent,
        ),
        lambda _: redirect(call, f"/dashboard/payments/{id}", "reconcile"),
    )


def show_cancel(service: PaymentsService, call: PageCall) -> Response:
    """The end of a Payment, to be confirmed."""
    details = call.resources.payments.read(call.path["paymentId"])
    return render_page(call, "cancel.html", section="payments", payment=details.payment)


def cancel(service: PaymentsService, call: PageCall) -> Response:
    """The cancelled Payment."""
    id = call.path["paymentId"]
    return run_form(
        call,
        lambda idempotent: call.resources.payments.cancel(id, idempotency_key=idempotent),
        lambda _: redirect(call, f"/dashboard/payments/{id}", "cancel"),
    )


def _read_refund(fields: Mapping[str, str]) -> NewRefund:
    return NewRefund(
        amount=fields.get("amount", "").strip() or UNSET,
        reason=fields.get("reason", "").strip() or None,
    )
