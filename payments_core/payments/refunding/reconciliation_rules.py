"""The decisions that a partner can make about a Payment, and when each is allowed. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Literal, get_args

from payments_core.errors import InvalidState, ReconciliationActionNotAllowed
from payments_core.payments.record import Payment
from payments_core.payments.refunds.plans import (
    Refundable,
    plan_all_held,
    plan_excess,
    plan_unpaid_payout,
)
from payments_core.payments.refunds.record import PENDING, Refund
from payments_core.payments.transitions import PAYMENT

ReconciliationAction = Literal[
    "accept", "refund", "refund_excess", "retry_execution", "write_off", "return_misdirected"
]
ANYBODY = "anybody"
"""In place of a destination: whether the action is allowed if one is named."""

RECONCILIATION_ACTIONS: tuple[ReconciliationAction, ...] = get_args(ReconciliationAction)


SENDS_BACK: tuple[ReconciliationAction, ...] = ("refund", "refund_excess", "return_misdirected")
"""The actions whose funds go back: to their senders, or to a destination."""


def find_refusal(
    action: ReconciliationAction,
    payment: Payment,
    refunds: Sequence[Refund],
    refundable: Refundable,
    destination: str | None,
) -> InvalidState | ReconciliationActionNotAllowed | None:
    """Why an action is not allowed now; None if it is allowed."""
    if not PAYMENT.allows(payment.status, _TRIGGERS[action]):
        return InvalidState("payment", payment.status, action)
    try:
        if action != "return_misdirected" and any(refund.status in PENDING for refund in refunds):
            _refuse_beside_refund(action, refundable)
        _CHECKS[action](payment, refundable, destination)
    except ReconciliationActionNotAllowed as refusal:
        return refusal
    return None


def _refuse_beside_refund(action: ReconciliationAction, refundable: Refundable) -> None:
    """Excess may go back beside a refund, unless it is already on its way."""
    if action != "refund_excess" or not refundable.excess:
        raise ReconciliationActionNotAllowed(action, "a refund is in progress")


def _check_accept(payment: Payment, refundable: Refundable, destination: str | None) -> None:
    if payment.can_retry:
        raise ReconciliationActionNotAllowed("accept", "its execution failed; use retry_execution")
    if refundable.escrow <= 0:
        raise ReconciliationActionNotAllowed("accept", "no funds are held for the recipient")


def _check_retry(payment: Payment, refundable: Refundable, destination: str | None) -> None:
    if not payment.can_retry:
        raise ReconciliationActionNotAllowed(
            "retry_execution", "no transfer to the recipient has failed"
        )
    if payment.intent == "send":  # a vault pays, or the funds are at the off-ramp address
        return
    if refundable.escrow <= 0:
        raise ReconciliationActionNotAllowed("retry_execution", "no funds are held")


def _check_refund(payment: Payment, refundable: Refundable, destination: str | None) -> None:
    if payment.payout is not None:
        plan_unpaid_payout(payment)
        return
    if payment.release_id is not None:
        raise ReconciliationActionNotAllowed("refund", "it has been released; refund it instead")
    plan_all_held(refundable, destination)


def _check_refund_excess(payment: Payment, refundable: Refundable, destination: str | None) -> None:
    plan_excess(refundable, destination)


def _check_write_off(payment: Payment, refundable: Refundable, destination: str | None) -> None:
    """Held funds stay held."""


def _check_return(payment: Payment, refundable: Refundable, destination: str | None) -> None:
    if not payment.misdirected:
        raise ReconciliationActionNotAllowed("return_misdirected", "no misdirected funds are held")


_CHECKS: Mapping[ReconciliationAction, Callable[[Payment, Refundable, str | None], None]] = {
    "accept": _check_accept,
    "refund": _check_refund,
    "refund_excess": _check_refund_excess,
    "retry_execution": _check_retry,
    "write_off": _check_write_off,
    "return_misdirected": _check_return,
}

_TRIGGERS: Mapping[ReconciliationAction, str] = {
    "accept": "reconcile_accept",
    "refund": "reconcile_refund",
    "refund_excess": "refund_excess",
    "retry_execution": "retry_execution",
    "write_off": "write_off",
    "return_misdirected": "return_misdirected",
}
"""The trigger of the Payment's table that an action leads to, now or when its refunds are final."""
