"""Ends a Payment's options, their operations, and unused reservations."""

from __future__ import annotations

from payments_core.accounts.vaults.reservations import Reservation, void_reservation
from payments_core.chains.outbox.record import OutboundTransfer, withdraw
from payments_core.clock import Instant
from payments_core.engine.decision import Decision
from payments_core.engine.step import Step
from payments_core.errors import InvalidState
from payments_core.payments.details import (
    DirectOptionDetails,
    OptionDetails,
    PaymentDetails,
    lock_direct_option,
    lock_option,
)
from payments_core.payments.funding import lifecycle as funding
from payments_core.payments.funding.record import FundingOperation
from payments_core.payments.mandates.usage import void_mandate_charge
from payments_core.payments.options import direct_lifecycle as direct
from payments_core.payments.options import lifecycle as options
from payments_core.payments.options.record import Option
from payments_core.payments.record import Payment
from payments_core.storage.port import Transaction


def close_open_options(
    tx: Transaction,
    payment: Payment,
    trigger: str,
    *,
    now: Instant,
    except_option_id: str | None = None,
) -> Decision[PaymentDetails]:
    """Expire or cancel every open option of the Payment except `except_option_id`; the
    result has them.

    An authorization that has not been handed to the chain is withdrawn and its reservation given
    back. Raises InvalidState if one can no longer be stopped.
    """
    details: list[OptionDetails] = []
    decision: Decision[None] = Decision(None)
    for option_id in payment.option_ids:
        if option_id == except_option_id:
            continue
        option, operation = lock_option(tx, option_id)
        if operation.status in funding.LIVE:
            decision = decision.merge(_cancel_authorization(tx, payment, operation))
        ended = _close_option(option, trigger, now=now)
        if ended.record != option:
            decision = decision.merge(ended.as_decision())
        stopped = funding.close(operation, trigger, payment, now=now)
        if stopped.record != operation:
            decision = decision.merge(stopped.as_decision())
        details.append(OptionDetails(payment, ended.record, stopped.record))
    direct_options = _close_direct_options(
        tx, payment, trigger, now=now, except_option_id=except_option_id
    )
    ended_all = PaymentDetails(payment, tuple(details), direct_options=direct_options.result)
    return Decision(ended_all).merge(decision, direct_options)


def close_pending_options(
    tx: Transaction, payment: Payment, *, now: Instant, except_option_id: str | None = None
) -> Decision[None]:
    """Cancel the options that nobody pays by yet, except `except_option_id`: no more is needed.

    A pending transfer by another option still arrives, as excess.
    """
    decision: Decision[None] = Decision(None)
    for option_id in payment.option_ids:
        if option_id == except_option_id:
            continue
        option, operation = lock_option(tx, option_id)
        if option.status != "pending":
            continue
        decision = decision.merge(options.close(option, "cancel", now=now).as_decision())
        stopped = funding.close(operation, "cancel", payment, now=now)
        if stopped.record != operation:
            decision = decision.merge(stopped.as_decision())
    return decision.merge(
        _close_direct_options(tx, payment, "cancel", now=now, except_option_id=except_option_id)
    )


def _close_direct_options(
    tx: Transaction, payment: Payment, trigger: str, *, now: Instant, except_option_id: str | None
) -> Decision[tuple[DirectOptionDetails, ...]]:
    known = [
        lock_direct_option(tx, id) for id in payment.direct_option_ids if id != except_option_id
    ]
    ended = [direct.close(option, trigger, now=now).record for option in known]
    changed = tuple(after for before, after in zip(known, ended, strict=True) if after != before)
    return Decision(
        tuple(DirectOptionDetails(payment, option) for option in ended), replaces=changed
    )


def _close_option(option: Option, trigger: str, *, now: Instant) -> Step[Option]:
    if option.status == "processing":  # its authorization was withdrawn: the funds will not come
        trigger = "fail"
    return options.close(option, trigger, now=now)


def _cancel_authorization(
    tx: Transaction, payment: Payment, operation: FundingOperation
) -> Decision[None]:
    """An authorization taken back, with its reservation and its draw on a mandate."""
    assert operation.outgoing_id is not None
    stopped = cancel_transfer(tx, payment, operation.outgoing_id)
    reservation = Reservation(
        vault_id=operation.vault_id,
        asset=payment.asset,
        amount=operation.amount,
        counted_at=operation.authorized_at,
    )
    return Decision(None, replaces=(stopped,)).merge(
        void_mandate_charge(tx, payment, operation.amount), void_reservation(tx, reservation)
    )


def cancel_transfer(tx: Transaction, payment: Payment, outgoing_id: str) -> OutboundTransfer:
    """A transfer withdrawn before it was handed to the chain. Raises InvalidState."""
    outgoing = tx.get(OutboundTransfer, outgoing_id, for_update=True)
    stopped = withdraw(outgoing) if outgoing else None
    if stopped is None:
        raise InvalidState("payment", payment.status, "cancel")
    return stopped
