"""The transfer to the recipient again, after the previous one failed permanently. Pure."""

from __future__ import annotations

from payments_core.accounts.vaults.balance import StaleBalance
from payments_core.accounts.vaults.policy_rules import Spend
from payments_core.accounts.vaults.reservations import reserve_funds
from payments_core.chains.outbox.record import OutboundTransfer, new_transfer, send_job
from payments_core.engine.decision import Decision
from payments_core.evolve import evolve
from payments_core.money import Atomic
from payments_core.payments import lifecycle
from payments_core.payments.payouts import lifecycle as payouts
from payments_core.payments.payouts.creation import lock_recipient
from payments_core.payments.payouts.jobs import payout_job
from payments_core.payments.record import OFFRAMP_OWNER, Payment
from payments_core.payments.refunding.case import Case
from payments_core.payments.release import SEND_RELEASE, new_release
from payments_core.payments.sends import lock_active_payer


def retry(case: Case) -> Decision[None]:
    """Send the transfer to the recipient again, after the previous one failed permanently."""
    payment = case.payment
    if payment.payout is not None and payouts.is_funded(payment):
        return _retry_payout(case)
    if payment.intent == "send":
        return _retry_send(case)
    outgoing = new_release(payment, case.id_sequence.issue("out"), now=case.now)
    return _start_retry(case, payment, outgoing, payment.releasable_atomic)


def _retry_send(case: Case) -> Decision[None]:
    payment, reading = case.payment, case.reading
    if reading is None or (payment.payout is not None and case.terms is None):
        raise StaleBalance
    assert payment.source is not None
    lock_active_payer(case.tx, case.authority, payment.source.account_id)
    destination = payment.destination
    spend = Spend(payment.asset, payment.amount_atomic, destination.address, destination.account_id)
    reservation = reserve_funds(case.tx, reading, spend, now=case.now)
    outgoing = new_transfer(
        case.id_sequence.issue("out"),
        payment.asset,
        "release",
        payment.id,
        source=reading.vault.contract,
        recipient=destination.address,
        amount=payment.amount_atomic,
        now=case.now,
        escrow_of=None if payment.payout is None else OFFRAMP_OWNER,
    )
    source = evolve(payment.source, policy_version=reservation.result, reserved_at_ms=case.now)
    drawing = evolve(payment, source=source)
    if case.terms is not None:
        lock_recipient(case.tx, case.terms)
        another = payouts.retry_payout(case.authority.partition, payment, funded_at=None)
        drawing = evolve(drawing, payout=another)
    return _start_retry(case, drawing, outgoing, payment.amount_atomic).merge(reservation)


def _retry_payout(case: Case) -> Decision[None]:
    """Ask the bank for another payout, from the funds at the off-ramp address."""
    payment = case.payment
    if case.terms is None:
        raise StaleBalance
    assert payment.source is not None
    lock_active_payer(case.tx, case.authority, payment.source.account_id)
    lock_recipient(case.tx, case.terms)
    another = payouts.retry_payout(case.authority.partition, payment, funded_at=case.now)
    step = lifecycle.retry(evolve(payment, payout=another), now=case.now, note=case.note)
    job = payout_job(step.record, case.now)
    return step.as_decision().merge(Decision(None, jobs=(job,)))


def _start_retry(
    case: Case, payment: Payment, outgoing: OutboundTransfer, amount: int
) -> Decision[None]:
    step = lifecycle.retry(payment, now=case.now, note=case.note)
    sending = evolve(step.record, release_id=outgoing.id, released_atomic=Atomic(amount))
    job = send_job(SEND_RELEASE, case.authority.partition, outgoing, case.now)
    return (
        evolve(step, record=sending)
        .as_decision()
        .merge(Decision(None, inserts=(outgoing,), jobs=(job,)))
    )
