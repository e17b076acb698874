"""The receipts after a look, and what they count for their Payment (see `observation.py`)."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from payments_core.chains.judge import ExpectedTransfer
from payments_core.chains.outbox.record import OutboundTransfer, withdraw_unsigned
from payments_core.engine.decision import Decision
from payments_core.engine.step import Step
from payments_core.evolve import evolve
from payments_core.money import format_amount
from payments_core.payments import lifecycle as payments
from payments_core.payments.journal.record import JournalEntry
from payments_core.payments.misdirected import follow_receipts
from payments_core.payments.receipts import lifecycle
from payments_core.payments.receipts.evaluation import Evaluation, evaluate
from payments_core.payments.receipts.progress import find_progress
from payments_core.payments.receipts.record import Receipt
from payments_core.payments.record import Payment
from payments_core.payments.refunds.waiting import withdraw_waiting
from payments_core.payments.sending_back import withdraw_unfunded
from payments_core.payments.tracking.attribution import name_payer
from payments_core.payments.tracking.case import Case, Observation, lock_row
from payments_core.payments.transitions import RELEASE_SENT
from payments_core.storage.port import Transaction


@attrs.frozen
class ReceiptEffects:
    """The receipts after the look, the changed Payment, and the stopped transfers."""

    step: Step[Payment]
    receipts: tuple[Receipt, ...]
    stopped: Decision[None]


def weigh(case: Case) -> Evaluation:
    payment = case.payment
    assert payment.escrow_address is not None
    return evaluate(
        case.tracked,
        case.receipts,
        case.observation.observed,
        ExpectedTransfer(
            payment.chain_id,
            payment.asset.address,
            payment.escrow_address,
            not_from=payment.route.address if payment.route is not None else None,
        ),
        lambda: case.id_sequence.issue("receipt"),
        now=case.now,
    )


def apply_receipts(case: Case, evaluation: Evaluation) -> ReceiptEffects:
    """Reverse undone receipts, note pending ones, count proven ones."""
    step, stopped, now = Step(case.payment), Decision(None), case.now
    observed = case.observation.observed
    for receipt in evaluation.reorged:
        release = _try_cancel_release(case.tx, step.record, receipt)
        step = step.then(_reverse_receipt, case, receipt, release_stopped=release is not None)
        if release is not None:
            stopped = stopped.merge(Decision(None, replaces=(release,)))
    if evaluation.reorged:
        step, withdrawn = withdraw_waiting(case.tx, step, case.tracked.transaction_hash, now=now)
        stopped = stopped.merge(withdrawn)
    brought_by = case.live.operation.id if case.live is not None else case.tracked.id
    if evaluation.has_pending_transfer and case.live is None:
        progress = find_progress(
            step.record, evaluation.receipts, observed.network, observed.heads.latest.number
        )
        step = step.then(payments.add_pending_transfer, brought_by, progress, now=now)
    receipts = {receipt.id: receipt for receipt in evaluation.receipts}
    for receipt in (name_payer(one, case.option) for one in evaluation.proven):
        before = step.record.counted_atomic
        step = step.then(payments.apply_receipt, receipt, brought_by, now=now, paid_at=case.paid_at)
        kept = step.record.counted_atomic - before
        receipts[receipt.id] = lifecycle.mark_verified(receipt, kept, now).record
    marked = tuple(_mark_sender(receipt, case.observation) for receipt in receipts.values())
    after, unfunded = withdraw_unfunded(case.tx, case.receipts, marked)
    step = follow_receipts(step, case.receipts, after, now=now)
    return ReceiptEffects(step, after, stopped.merge(unfunded))


def note_unsettled(
    payment: Payment, case: Case, receipts: Sequence[Receipt], *, is_followed: bool
) -> Step[Payment]:
    """The Payment, which lists the transaction as long as it counts and may be undone."""
    if payment.early_acceptance is None or case.tracked.is_ours:  # what counts is final
        return Step(payment)
    hash = case.tracked.transaction_hash
    counts = any(receipt.status == "verified" for receipt in receipts)
    if (hash in payment.unsettled) == (counts and is_followed):
        return Step(payment)
    others = tuple(other for other in payment.unsettled if other != hash)
    return Step(evolve(payment, unsettled=(*others, hash) if counts and is_followed else others))


def _reverse_receipt(
    payment: Payment, case: Case, receipt: Receipt, *, release_stopped: bool
) -> Step[Payment]:
    """The reversal of a receipt; if the Payment was accepted, its journal says what that means."""
    step = payments.reverse_receipt(payment, receipt, now=case.now, release_stopped=release_stopped)
    before, network = case.payment, case.observation.observed.network
    if before.status not in ("accepted", *RELEASE_SENT):
        return step
    amount = format_amount(receipt.amount_atomic, payment.decimals)
    chain = f"chain {receipt.chain_id}" if network is None else network.name
    note = (
        f"A reorg of {chain} undid {amount} {payment.asset_symbol} of {payment.id} after it was"
        f" accepted ({before.status}): what was delivered for that is not paid"
    )
    entries = (one for one in step.entries if isinstance(one, JournalEntry))
    return evolve(step, entries=tuple(evolve(entry, note=note) for entry in entries))


def _mark_sender(receipt: Receipt, observation: Observation) -> Receipt:
    """The receipt that says whether a contract sent it, which may take a refund and keep it."""
    if observation.contracts is None:
        return receipt
    return evolve(receipt, is_from_contract=receipt.sender in observation.contracts)


def _try_cancel_release(
    tx: Transaction, payment: Payment, receipt: Receipt
) -> OutboundTransfer | None:
    """The release that misses this receipt, withdrawn; None if it cannot be or need not be."""
    if payment.status not in ("accepted", "executing"):
        return None
    if payment.release_id is None or not receipt.counted_atomic:
        return None
    return withdraw_unsigned(lock_row(tx, OutboundTransfer, payment.release_id))
