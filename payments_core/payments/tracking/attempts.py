"""The operation that sent a transaction, with its option and its reservation, after a look.

`observation.py` says when each of these takes place.
"""

from __future__ import annotations

from payments_core.accounts.vaults.reservations import BalanceReading, settle_reservation
from payments_core.chains.outbox.record import OutboundTransfer, mark_failed, send_job
from payments_core.engine.decision import Decision
from payments_core.engine.step import Step
from payments_core.payments.funding import lifecycle as funding
from payments_core.payments.funding.record import FundingOperation
from payments_core.payments.options import lifecycle as options
from payments_core.payments.paying.authorization import SEND_FUNDING
from payments_core.payments.paying.failure import fail_funding, reservation_of_operation
from payments_core.payments.receipts.evaluation import Evaluation
from payments_core.payments.record import Payment
from payments_core.payments.tracking.case import Case, FundingAttempt, lock_row


def advance_operation(case: Case, attempt: FundingAttempt, payment: Payment) -> Decision[None]:
    """The operation while its transaction is not final; if undone, it is handed to its sender."""
    moved = _note_chain_state(case, attempt.operation, payment)
    if moved.record == attempt.operation:
        return Decision(None)
    if moved.record.status != "authorized":
        return moved.as_decision()
    outgoing = lock_row(case.tx, OutboundTransfer, str(attempt.operation.outgoing_id))
    again = send_job(SEND_FUNDING, case.partition, outgoing, case.now)
    return moved.as_decision().merge(Decision(None, jobs=(again,)))


def confirm_operation(
    case: Case,
    attempt: FundingAttempt,
    reading: BalanceReading,
    payment: Payment,
    evaluation: Evaluation,
) -> Decision[None]:
    """The operation and its option at their end, and the reservation spent."""
    hash = case.tracked.transaction_hash  # the one of the signed versions that moved it
    confirmed = _note_chain_state(case, attempt.operation, payment).then(
        funding.apply_trigger, "confirm", payment, now=case.now, transaction_hash=hash
    )
    paid = attempt.option.paid_atomic + verified_amount(evaluation)
    succeeded = options.apply_trigger(attempt.option, "verify", now=case.now, paid_atomic=paid)
    reservation = reservation_of_operation(confirmed.record, payment)
    return confirmed.as_decision().merge(
        succeeded.as_decision(),
        settle_reservation(case.tx, reservation, reading, succeeded=True, now=case.now),
    )


def _note_chain_state(
    case: Case, operation: FundingOperation, payment: Payment
) -> Step[FundingOperation]:
    """The operation as far as the chain knows its transaction; unchanged if nothing is new."""
    observed, trigger = case.observation.observed, None
    was_in_a_block = operation.status == "broadcast" and case.tracked.block_hash is not None
    if observed.view is not None and operation.status in ("authorized", "unknown"):
        trigger = "broadcast"
    elif observed.block is None and (was_in_a_block or operation.status == "unknown"):
        trigger = "reorg"
    if trigger is None:
        return Step(operation)
    hash = case.tracked.transaction_hash
    return funding.apply_trigger(operation, trigger, payment, now=case.now, transaction_hash=hash)


def verified_amount(evaluation: Evaluation) -> int:
    """The amount that the transaction has proven, now or at an earlier look."""
    verified = [receipt for receipt in evaluation.receipts if receipt.status == "verified"]
    return sum(receipt.amount_atomic for receipt in (*verified, *evaluation.proven))


def fail_operation(
    case: Case,
    attempt: FundingAttempt,
    reading: BalanceReading,
    step: Step[Payment],
    evaluation: Evaluation,
) -> Decision[None]:
    """The transaction is final and proves nothing: the reservation is released."""
    reasons = [receipt.rejection_reason for receipt in evaluation.receipts]
    has_failed = case.observation.nonce_was_taken or case.observation.observed.has_failed
    failed = "transaction_failed" if has_failed else "wrong_recipient"
    reservation = reservation_of_operation(attempt.operation, step.record)
    assert attempt.operation.outgoing_id is not None
    void = mark_failed(case.tx, attempt.operation.outgoing_id)
    nothing = fail_funding(
        case.tx, case.id_sequence, case.partition, step, attempt.option, attempt.operation, "fail",
        lambda: settle_reservation(
            case.tx, reservation, reading, succeeded=False, now=case.now
        ),
        reason=next((reason for reason in reasons if reason), failed), now=case.now,
    )  # fmt: skip
    return void.merge(nothing)
