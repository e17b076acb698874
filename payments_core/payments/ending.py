"""What ends with a Payment: its options, their operations, and reservations not yet used."""

from __future__ import annotations

from payments_core.accounts.vaults.reservations import Reservation, withdrawn
from payments_core.chains.outbox.record import Outgoing, withdraw
from payments_core.clock import Instant
from payments_core.engine.decision import Decision
from payments_core.engine.step import Step
from payments_core.errors import InvalidState
from payments_core.payments.details import (
    DirectDetails,
    OptionDetails,
    PaymentDetails,
    locked_direct_option,
    locked_option,
)
from payments_core.payments.funding import lifecycle as funding
from payments_core.payments.funding.record import FundingOperation
from payments_core.payments.mandates.drawing import given_back
from payments_core.payments.options import direct
from payments_core.payments.options import lifecycle as options
from payments_core.payments.options.record import Option
from payments_core.payments.record import Payment
from payments_core.storage.port import Transaction


def end_options(
    tx: Transaction, payment: Payment, trigger: str, *, now: Instant, but: str | None = None
) -> Decision[PaymentDetails]:
    """Expire or cancel whatever of the Payment's options is open, `but` one; the result has them.

    An authorization that has not been handed to the chain is withdrawn and its reservation given
    back. Raises InvalidState where one can no longer be stopped.
    """
    details: list[OptionDetails] = []
    decision: Decision[None] = Decision(None)
    for option_id in payment.option_ids:
        if option_id == but:
            continue
        option, operation = locked_option(tx, option_id)
        if operation.status in funding.LIVE:
            decision = decision.joined(_withdrawn(tx, payment, operation))
        ended = _ended(option, trigger, now=now)
        if ended.record != option:
            decision = decision.joined(ended.as_decision())
        stopped = funding.end(operation, trigger, payment, now=now)
        if stopped.record != operation:
            decision = decision.joined(stopped.as_decision())
        details.append(OptionDetails(payment, ended.record, stopped.record))
    direct_options = _ended_direct(tx, payment, trigger, now=now, but=but)
    ended_all = PaymentDetails(payment, tuple(details), direct_options=direct_options.result)
    return Decision(ended_all).joined(decision, direct_options)


def _ended_direct(
    tx: Transaction, payment: Payment, trigger: str, *, now: Instant, but: str | None
) -> Decision[tuple[DirectDetails, ...]]:
    known = [locked_direct_option(tx, id) for id in payment.direct_option_ids if id != but]
    ended = [direct.end(option, trigger, now=now).record for option in known]
    changed = tuple(after for before, after in zip(known, ended, strict=True) if after != before)
    return Decision(tuple(DirectDetails(payment, option) for option in ended), replaces=changed)


def _ended(option: Option, trigger: str, *, now: Instant) -> Step[Option]:
    if option.status == "processing":  # its authorization was withdrawn: the funds will not come
        trigger = "fail"
    return options.end(option, trigger, now=now)


def _withdrawn(tx: Transaction, payment: Payment, operation: FundingOperation) -> Decision[None]:
    """An authorization taken back, with its reservation and what it drew on a mandate."""
    assert operation.outgoing_id is not None
    stopped = stopped_transfer(tx, payment, operation.outgoing_id)
    reservation = Reservation(
        vault_id=operation.vault_id,
        asset=payment.asset,
        amount=operation.amount,
        counted_at=operation.authorized_at,
    )
    return Decision(None, replaces=(stopped,)).joined(
        given_back(tx, payment, operation.amount), withdrawn(tx, reservation)
    )


def stopped_transfer(tx: Transaction, payment: Payment, outgoing_id: str) -> Outgoing:
    """A transfer withdrawn before it was handed to the chain. Raises InvalidState."""
    outgoing = tx.get(Outgoing, outgoing_id, for_update=True)
    stopped = withdraw(outgoing) if outgoing else None
    if stopped is None:
        raise InvalidState("payment", payment.status, "cancel")
    return stopped
