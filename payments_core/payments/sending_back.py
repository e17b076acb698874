"""The way back of misdirected receipts: requested by the partner, sent and followed by the outbox.

The receipt is the transfer's owner. It names its newest transfer, and gets another only after that
one has failed, so what it holds goes back at most once. The Payment's books are not concerned.
"""

from __future__ import annotations

from collections.abc import Sequence

from payments_core.chains.outbox.owners import TransferToSend
from payments_core.chains.outbox.record import (
    OutboundTransfer,
    TransferOutcome,
    TransferPurpose,
    TransferToWatch,
    new_transfer,
    send_job,
    watch_job,
)
from payments_core.chains.port import SignedTransaction
from payments_core.clock import Instant
from payments_core.engine.decision import Decision
from payments_core.engine.step import Step
from payments_core.errors import ReconciliationActionNotAllowed
from payments_core.evolve import evolve
from payments_core.misdirected import lifecycle, transfers
from payments_core.misdirected.record import SentBack
from payments_core.networks import Asset
from payments_core.payments import misdirected
from payments_core.payments.details import lock_payment
from payments_core.payments.events import build_event
from payments_core.payments.receipts.record import Receipt
from payments_core.payments.record import Payment
from payments_core.screening.judging import Judgement
from payments_core.storage.jobs import Job
from payments_core.storage.port import Transaction
from payments_core.storage.reads import Get

SEND_BACK = "receipts.send_back"
WATCH_RETURN = "receipts.watch_return"
ACTION = "return_misdirected"

_LockedReceipt = tuple[Payment, Receipt]


def require_returnable(receipt: Receipt) -> Asset:
    """The token that can be sent back. Raises ReconciliationActionNotAllowed."""
    token, sent_back = receipt.token, receipt.sent_back
    if not receipt.is_misdirected or token is None:
        raise ReconciliationActionNotAllowed(ACTION, "the receipt holds no misdirected funds")
    if sent_back is not None and sent_back.is_under_way:
        raise ReconciliationActionNotAllowed(ACTION, "its funds are on their way back")
    if not receipt.holds_misdirected:
        raise ReconciliationActionNotAllowed(ACTION, "its funds were sent back")
    return token


def decide_return(
    partition: str,
    payment: Payment,
    receipt: Receipt,
    id: str,
    destination: str,
    *,
    note: str | None,
    now: Instant,
) -> Decision[None]:
    """A locked receipt's funds, from the escrow on their own chain to a destination.

    Raises ReconciliationActionNotAllowed.
    """
    token = require_returnable(receipt)
    assert payment.escrow is not None
    outgoing = new_transfer(
        id,
        token,
        "refund",
        receipt.id,
        source=payment.escrow,
        recipient=destination,
        amount=receipt.amount_atomic,
        now=now,
    )
    returning = evolve(receipt, sent_back=lifecycle.create(id, destination, note=note))
    return Decision(
        None,
        inserts=(outgoing,),
        replaces=(returning, evolve(payment, updated_at_ms=now)),
        jobs=(send_job(SEND_BACK, partition, outgoing, now),),
    )


def withdraw_unfunded(
    tx: Transaction, before: Sequence[Receipt], after: Sequence[Receipt]
) -> tuple[tuple[Receipt, ...], Decision[None]]:
    """The receipts of a Payment's look, without the returns of funds that a reorg undid.

    A signed return continues, since a node may have it: without its funds it fails.
    """
    known = {receipt.id: receipt for receipt in before}
    kept, stopped = [], Decision(None)
    for receipt in after:
        sent_back, earlier = receipt.sent_back, known.get(receipt.id)
        undone = earlier is not None and _is_undone(earlier, receipt)
        ends = transfers.withdraw_unfunded(tx, sent_back) if undone and sent_back else None
        if ends is not None:
            ended, withdrawn = ends
            receipt = evolve(receipt, sent_back=ended)
            stopped = stopped.merge(Decision(None, replaces=(withdrawn,)))
        kept.append(receipt)
    return tuple(kept), stopped


def _is_undone(before: Receipt, after: Receipt) -> bool:
    """Whether a look found less, more, or something else than the misdirected funds before it."""
    if not before.is_misdirected:
        return False
    held = (before.token_address, before.amount_atomic, before.sender)
    return not after.is_misdirected or held != (
        after.token_address,
        after.amount_atomic,
        after.sender,
    )


class ReceiptReturnOwner:
    """A misdirected receipt with its Payment, whose funds go back."""

    purpose: TransferPurpose = "receipt_return"
    record_type = Receipt
    send_kind = SEND_BACK
    watch_kind = WATCH_RETURN
    on_unsent = None

    def find_to_send(self, record: Receipt) -> TransferToSend | None:
        """The transfer that was requested."""
        if record.token is None:
            return None
        payment_id, amount = record.payment_id, record.amount_atomic
        return transfers.find_to_send(record, payment_id, record.token, amount)

    def on_screened(
        self, tx: Transaction, record: Receipt, judgement: Judgement, *, now: Instant
    ) -> Decision[bool] | None:
        """Held; or `failed`, and it is reported and can be requested again."""
        payment, receipt = _lock_receipt(tx, record.id)
        judged = transfers.take_judgement(tx, receipt, judgement)
        if judged is None:
            return None
        sent_back, withdrawn = judged
        step = Step(payment)
        if withdrawn is None:
            if sent_back.in_review and sent_back != receipt.sent_back:
                step = Step(payment, (build_event("payment.in_review", payment),))
            return Decision(True).merge(_write(receipt, sent_back, step, now))
        if receipt.holds_misdirected:
            step = misdirected.report(payment, receipt, more=0, now=now)
        failed = _write(receipt, sent_back, step, now)
        return Decision(False, replaces=(withdrawn,)).merge(failed)

    def find_to_watch(self, record: Receipt, job: Job) -> TransferToWatch | None:
        """The transfer that was sent."""
        return transfers.find_to_watch(record)

    def locks(self, record: Receipt, transaction_hash: str) -> Sequence[Get]:
        """The Payment and the receipt."""
        return (
            Get(Payment, record.payment_id, "exclusive"),
            Get(Receipt, record.id, "exclusive"),
        )

    def on_sent(
        self, tx: Transaction, record: Receipt, signed: SignedTransaction, *, now: Instant
    ) -> Decision[None]:
        """The return is `submitted`."""
        payment, receipt = _lock_receipt(tx, record.id)
        sent = transfers.submit(receipt, signed)
        if sent is None:
            return Decision(None)
        watch = watch_job(WATCH_RETURN, f"payment:{payment.id}", receipt.id, now=now)
        return _write(receipt, sent, Step(payment), now).merge(Decision(None, jobs=(watch,)))

    def read_chain(self, partition: str, record: Receipt, outcome: TransferOutcome) -> None:
        """Nothing more: the log proves it."""

    def lock(self, tx: Transaction, record: Receipt, outgoing_id: str) -> _LockedReceipt | None:
        """The Payment, and the receipt if it still waits for this transfer."""
        payment, receipt = _lock_receipt(tx, record.id)
        return (payment, receipt) if transfers.awaits(receipt, outgoing_id) else None

    def on_final(
        self,
        tx: Transaction,
        locked: _LockedReceipt,
        outcome: TransferOutcome,
        facts: None,
        *,
        now: Instant,
    ) -> Decision[None]:
        """Sent back; or failed permanently, and it can be requested again."""
        payment, receipt = locked
        sent_back = receipt.sent_back
        assert sent_back is not None
        if outcome.reason is None:
            done = lifecycle.apply_trigger(sent_back, "confirm", transaction_hash=outcome.hash)
        else:
            done = lifecycle.apply_trigger(sent_back, "fail", failure=outcome.reason)
        step = Step(payment)
        if receipt.holds_misdirected and outcome.reason is None:
            step = misdirected.note_sent_back(payment, now=now, note=sent_back.note)
        elif receipt.holds_misdirected:
            step = misdirected.report(payment, receipt, more=0, now=now)
        return _write(receipt, done, step, now)

    def on_reversed(
        self, tx: Transaction, outgoing: OutboundTransfer, reason: str, *, now: Instant
    ) -> Decision[None]:
        """The funds are at the escrow again: it is reported again, and can be requested again."""
        payment, receipt = _lock_receipt(tx, outgoing.owner_id)
        sent_back = receipt.sent_back
        if sent_back is None or sent_back.outgoing_id != outgoing.id:
            return Decision(None)
        if sent_back.status != "succeeded":
            return Decision(None)
        undone = lifecycle.apply_trigger(sent_back, "reorg", failure=reason)
        step = Step(payment)
        if receipt.is_misdirected:
            step = misdirected.report(payment, receipt, more=1, now=now)
        return _write(receipt, undone, step, now)


def _write(
    receipt: Receipt, sent_back: SentBack, step: Step[Payment], now: Instant
) -> Decision[None]:
    """The receipt with its return, and the Payment: its receipts are part of its answer."""
    touched = evolve(step, record=evolve(step.record, updated_at_ms=now))
    changed = evolve(receipt, sent_back=sent_back)
    return Decision(None, replaces=(changed,)).merge(touched.as_decision())


def _lock_receipt(tx: Transaction, receipt_id: str) -> _LockedReceipt:
    known = tx.get(Receipt, receipt_id)
    assert known is not None, f"no receipt {receipt_id}"
    payment = lock_payment(tx, known.payment_id)
    receipt = tx.get(Receipt, receipt_id, for_update=True)
    assert receipt is not None
    return payment, receipt
