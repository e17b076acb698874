"""The failure of an operation, carried to its option, its Payment and its mandate."""

from __future__ import annotations

from collections.abc import Callable

from payments_core.accounts.vaults.reservations import Reservation
from payments_core.clock import Instant
from payments_core.engine.decision import Decision
from payments_core.engine.identifiers import IdSequence
from payments_core.engine.step import Step
from payments_core.payments import lifecycle as payments
from payments_core.payments.funding import lifecycle
from payments_core.payments.funding.record import FundingOperation
from payments_core.payments.mandates.usage import void_mandate_charge
from payments_core.payments.options import lifecycle as options
from payments_core.payments.options.record import PaymentOption
from payments_core.payments.progress import advance_payment
from payments_core.payments.record import Payment
from payments_core.storage.port import Transaction


def reservation_of_operation(operation: FundingOperation, payment: Payment) -> Reservation:
    """The amounts that an operation's authorization has reserved."""
    return Reservation(
        vault_id=operation.vault_id,
        asset=payment.asset,
        amount_atomic=operation.amount_atomic,
        counted_at_ms=operation.authorized_at_ms,
    )


def fail_funding(
    tx: Transaction,
    id_sequence: IdSequence,
    partition: str,
    step: Step[Payment],
    option: PaymentOption,
    operation: FundingOperation,
    trigger: str,
    end_reservation: Callable[[], Decision[None]],
    *,
    reason: str,
    now: Instant,
) -> Decision[None]:
    """The operation failed or expired, its option failed, and the Payment waits again.

    The Payment is committed with its next step. `end_reservation` is called last: a mandate is
    locked before a balance, here as when both are drawn on.
    """
    ended = lifecycle.apply_trigger(operation, trigger, step.record, now=now, failure=reason)
    failed = options.close(option, "fail", now=now)
    after = step.then(payments.fail_attempt, operation.id, now=now, reason=reason)
    return ended.as_decision().merge(
        failed.as_decision(),
        advance_payment(tx, id_sequence, partition, after, now=now, ended=option.id),
        void_mandate_charge(tx, step.record, operation.amount_atomic),
        end_reservation(),
    )
