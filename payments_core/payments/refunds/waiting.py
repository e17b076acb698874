"""Refunds that wait: nothing is sent back before what it returns is final.

A Payment may count a transfer before it is final. Its release may be sent then: without the
transfer the escrow is empty, and the release moves nothing. A refund may not. The escrow may hold
other transfers, of another sender, or one that arrives later, and the recipient's vault holds other
money in any case: a refund would pay with that, and what it returns could still be undone.

So a refund waits for all transactions that are `unsettled` when it is requested: the Payment has
counted them, and they may still be undone. Its amount is set aside meanwhile. Each look that ends
the following of one of them ends the wait for it. If a reorg undoes one of them, the refund ends,
and the partner decides again. A refund from the recipient's vault is not signed before the release
is final, either (`funded_by`): one that failed when it was sent again would leave the same money in
escrow, to be refunded once more.
"""

from __future__ import annotations

from payments_core.acceptance import Acceptance
from payments_core.chains.outbox.record import sender_lane
from payments_core.clock import Instant
from payments_core.engine.decision import Decision, NewJob
from payments_core.engine.step import Step
from payments_core.evolve import evolve
from payments_core.payments.record import Payment
from payments_core.payments.refunds.plans import RefundLeg
from payments_core.payments.refunds.record import Refund
from payments_core.payments.refunds.withdrawal import withdraw_unsigned_refunds
from payments_core.storage.port import Transaction

SEND_REFUND = "refunds.send"


def choose_acceptance(payment: Payment) -> Acceptance | None:
    """When the transfer of a refund out of the Payment's escrow counts: as its receipts do."""
    row = payment.early_acceptance
    return row and evolve(row, depth=max(row.depth, payment.confirmations))


def needs_final_release(payment: Payment, leg: RefundLeg) -> bool:
    """Whether a refund is signed only while the transfer that it relies on is final."""
    if leg.from_recipient_atomic:
        return payment.early_acceptance is not None
    return leg.from_offramp_atomic > 0


def end_wait(
    tx: Transaction, partition: str, payment: Payment, hash: str, *, now: Instant
) -> Decision[None]:
    """A transaction of a locked Payment is final: refunds that waited for nothing else are sent."""
    decision: Decision[None] = Decision(None)
    for refund in _lock_waiting(tx, payment, hash):
        left = tuple(other for other in refund.waits_for if other != hash)
        lane = sender_lane(partition, refund.chain_id)
        job = NewJob("chain", SEND_REFUND, lane, now, refund.id)
        changed = evolve(refund, waits_for=left, updated_at_ms=now)
        decision = decision.merge(Decision(None, replaces=(changed,), jobs=() if left else (job,)))
    return decision


def withdraw_waiting(
    tx: Transaction, step: Step[Payment], hash: str, *, now: Instant
) -> tuple[Step[Payment], Decision[None]]:
    """The step of a locked Payment without the refunds that waited for an undone transaction."""
    return withdraw_unsigned_refunds(tx, step, _lock_waiting(tx, step.record, hash), now=now)


def _lock_waiting(tx: Transaction, payment: Payment, hash: str) -> list[Refund]:
    if payment.early_acceptance is None:
        return []
    found = [tx.get(Refund, id, for_update=True) for id in payment.refunding]
    return [refund for refund in found if refund is not None and hash in refund.waits_for]
