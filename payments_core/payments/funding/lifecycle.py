"""The states of a funding operation (contract §6), and the pure steps through them."""

from __future__ import annotations

from typing import Any

from payments_core.clock import Instant
from payments_core.engine.events import NewEvent
from payments_core.engine.state_machine import StateMachine, Transition, transitions_from
from payments_core.engine.step import Step
from payments_core.evolve import evolve
from payments_core.payments.funding.record import FundingOperation
from payments_core.payments.record import Payment

FUNDING_OPERATION = StateMachine(
    "vault funding operation",
    (
        Transition(
            None, "create", "awaiting_authorization", why="The option waits for its action."
        ),
        Transition(
            "awaiting_authorization",
            "authorize",
            "authorized",
            emits="vault_funding.authorized",
            why="The action was consumed and the vault's balance is reserved.",
        ),
        Transition(
            "authorized",
            "broadcast",
            "broadcast",
            emits="vault_funding.broadcast",
            why="The signed transfer was sent to the chain.",
        ),
        Transition(
            "broadcast",
            "confirm",
            "confirmed",
            emits="vault_funding.confirmed",
            why="The transfer is proven and final.",
        ),
        Transition("broadcast", "reorg", "authorized", why="A reorg removed the transfer."),
        *transitions_from(
            ("awaiting_authorization", "authorized"),
            "expire",
            "expired",
            why="The authorization expired before anything was sent.",
        ),
        *transitions_from(
            ("awaiting_authorization", "authorized"),
            "cancel",
            "cancelled",
            why="Before anything was sent, the Payment was cancelled or another option selected.",
        ),
        *transitions_from(
            ("authorized", "broadcast", "unknown"),
            "fail",
            "failed",
            emits="vault_funding.failed",
            why="The failure is final on chain; the reservation is voided.",
        ),
        *transitions_from(
            ("authorized", "broadcast"),
            "lose",
            "unknown",
            why="The chain's answer was lost; the service reads the chain before it sends again.",
        ),
        Transition(
            "unknown",
            "broadcast",
            "broadcast",
            emits="vault_funding.broadcast",
            why="The chain was read: it has the transaction.",
        ),
        Transition(
            "unknown",
            "confirm",
            "confirmed",
            emits="vault_funding.confirmed",
            why="The chain was read: the transfer is proven and final.",
        ),
        Transition(
            "unknown",
            "reorg",
            "authorized",
            why="The chain was read: it does not have the transaction.",
        ),
    ),
    terminal=("confirmed", "expired", "cancelled", "failed"),
)

LIVE = ("authorized", "broadcast", "unknown")
"""The states in which funds may still move, and the vault's balance stays reserved."""

_TIMESTAMP_FIELDS = {
    "authorized": "authorized_at_ms",
    "broadcast": "broadcast_at_ms",
    "confirmed": "confirmed_at_ms",
}


def apply_trigger(
    operation: FundingOperation, /, trigger: str, payment: Payment, *, now: Instant, **changes: Any
) -> Step[FundingOperation]:
    """The operation after `trigger`, with `changes`. Raises InvalidState."""
    row = FUNDING_OPERATION.step(operation.status, trigger)
    moment = _TIMESTAMP_FIELDS.get(row.target)
    if moment is not None and getattr(operation, moment) is None:  # a reorg keeps them
        changes.setdefault(moment, now)
    after = evolve(
        operation,
        status=row.target,
        status_version=operation.status_version + 1,
        updated_at_ms=now,
        **changes,
    )
    return Step(after, (_build_event(row.emits, after, payment),) if row.emits else ())


def close(
    operation: FundingOperation, trigger: str, payment: Payment, *, now: Instant
) -> Step[FundingOperation]:
    """The operation expired or cancelled if that is possible, else unchanged."""
    if not FUNDING_OPERATION.allows(operation.status, trigger):
        return Step(operation)
    return apply_trigger(operation, trigger, payment, now=now)


def _build_event(name: str, operation: FundingOperation, payment: Payment) -> NewEvent:
    return NewEvent(
        name,
        {
            "paymentId": operation.payment_id,
            "optionId": operation.option_id,
            "fundingOperationId": operation.id,
            "status": operation.status,
            "statusVersion": operation.status_version,
            "amountAtomic": str(operation.amount_atomic),
        },
        payment.api_version,
        payment.account_id,
        payment.external_user_id,
    )
