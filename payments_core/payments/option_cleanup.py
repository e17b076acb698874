"""Ends a Payment's options, their operations, and unused reservations."""

from __future__ import annotations

from payments_core.accounts.vaults.reservations import Reservation, void_reservation
from payments_core.chains.outbox.record import OutboundTransfer, withdraw
from payments_core.clock import Instant
from payments_core.engine.decision import Decision
from payments_core.errors import InvalidState
from payments_core.payments.details import (
    OptionDetails,
    PaymentDetails,
    lock_operation,
    lock_option,
)
from payments_core.payments.funding import lifecycle as funding
from payments_core.payments.funding.record import FundingOperation
from payments_core.payments.mandates.usage import void_mandate_charge
from payments_core.payments.options import lifecycle as options
from payments_core.payments.options.record import PaymentOption
from payments_core.payments.record import Payment
from payments_core.storage.damaged_records import lock_readable
from payments_core.storage.port import Transaction


def close_open_options(
    tx: Transaction, payment: Payment, trigger: str, *, now: Instant
) -> Decision[PaymentDetails]:
    """Expire or cancel every open option of the Payment; the result has them.

    An authorization that has not been handed to the chain is withdrawn and its reservation given
    back. Raises InvalidState if one can no longer be stopped.
    """
    details: list[OptionDetails] = []
    decision: Decision[None] = Decision(None)
    for option_id in payment.option_ids:
        option = lock_option(tx, option_id)
        operation = lock_operation(tx, option)
        if operation is not None and operation.status in funding.LIVE:
            decision = decision.merge(_cancel_authorization(tx, payment, operation))
        ended, closed = _close(option, operation, payment, trigger, now=now)
        decision = decision.merge(closed)
        details.append(ended)
    return Decision(PaymentDetails(payment, tuple(details))).merge(decision)


def close_pending_options(
    tx: Transaction,
    partition: str,
    payment: Payment,
    *,
    now: Instant,
    except_option_id: str | None = None,
) -> Decision[None]:
    """Cancel the options that nobody pays by yet, except `except_option_id`: no more is needed.

    A pending transfer by another option still arrives, as excess. An option stays as it is if its
    row or its operation's is damaged: nobody can authorize it, since the Payment is covered.
    """
    others = [id for id in payment.option_ids if id != except_option_id]
    options = lock_readable(tx, partition, PaymentOption, others)
    known = [options[id] for id in others if id in options]
    pending = [option for option in known if option.status in ("creating", "pending")]
    operation_ids = [id for option in pending if (id := option.funding_operation_id) is not None]
    operations = lock_readable(tx, partition, FundingOperation, operation_ids)
    decision: Decision[None] = Decision(None)
    for option in pending:
        operation = operations.get(str(option.funding_operation_id))
        if operation is not None or option.is_public:
            _, closed = _close(option, operation, payment, "cancel", now=now)
            decision = decision.merge(closed)
    return decision


def _close(
    option: PaymentOption,
    operation: FundingOperation | None,
    payment: Payment,
    trigger: str,
    *,
    now: Instant,
) -> tuple[OptionDetails, Decision[None]]:
    """The option and its operation at their end, and what changes."""
    ended = options.close_with_payment(option, trigger, now=now)
    decision = Decision(None) if ended.record == option else ended.as_decision()
    if operation is None:
        return OptionDetails(payment, ended.record), decision
    stopped = funding.close(operation, trigger, payment, now=now)
    if stopped.record != operation:
        decision = decision.merge(stopped.as_decision())
    return OptionDetails(payment, ended.record, stopped.record), decision


def _cancel_authorization(
    tx: Transaction, payment: Payment, operation: FundingOperation
) -> Decision[None]:
    """An authorization taken back, with its reservation and its draw on a mandate."""
    assert operation.outgoing_id is not None
    stopped = cancel_transfer(tx, payment, operation.outgoing_id)
    reservation = Reservation(
        vault_id=operation.vault_id,
        asset=payment.asset,
        amount_atomic=operation.amount_atomic,
        counted_at_ms=operation.authorized_at_ms,
    )
    return Decision(None, replaces=(stopped,)).merge(
        void_mandate_charge(tx, payment, operation.amount_atomic), void_reservation(tx, reservation)
    )


def cancel_transfer(tx: Transaction, payment: Payment, outgoing_id: str) -> OutboundTransfer:
    """A transfer withdrawn before it was handed to the chain. Raises InvalidState."""
    outgoing = tx.get(OutboundTransfer, outgoing_id, for_update=True)
    stopped = withdraw(outgoing) if outgoing else None
    if stopped is None:
        raise InvalidState("payment", payment.status, "cancel")
    return stopped
