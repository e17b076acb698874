"""Refunds that wait: nothing is sent back before what it returns is final.

A Payment may count a transfer before it is final. Its release may be sent then: without the
transfer the escrow is empty, and the release moves nothing. A refund may not. The escrow may hold
other transfers, of another sender, or one that arrives later, and the recipient's vault holds other
money in any case: a refund would pay with that, and what it returns could still be undone.

So a refund waits for all transactions that its Payment has counted and that may still be undone,
with its amount set aside. Each look that ends the following of one of them ends the wait for it. If
a reorg undoes one of them, the refund ends, and the partner decides again.
"""

from __future__ import annotations

from payments_core.acceptance import Acceptance
from payments_core.accounts.vaults.reservations import Reservation, void_reservation
from payments_core.chains.outbox.record import lock_transfer, sender_lane, withdraw
from payments_core.clock import Instant
from payments_core.engine.decision import Decision, NewJob
from payments_core.engine.step import Step
from payments_core.errors import ResourceConflict
from payments_core.evolve import evolve
from payments_core.payments import lifecycle as payments
from payments_core.payments.receipts.record import TrackedTransaction
from payments_core.payments.record import Payment
from payments_core.payments.refunds import lifecycle
from payments_core.payments.refunds.record import Refund
from payments_core.storage.port import Position, Transaction

SEND_REFUND = "refunds.send"

MAX_AWAITED = 200
"""The maximum number of transactions that a refund waits for; a record must stay small."""


def find_awaited(tx: Transaction, payment: Payment) -> tuple[str, ...]:
    """The hashes of the transactions that a refund of a locked Payment must wait for.

    Raises ResourceConflict if there are too many.
    """
    if payment.early_acceptance is None:  # what counts is final
        return ()
    awaited: list[str] = []
    after: Position | None = None
    while True:
        page = tx.find(TrackedTransaction, "by_payment", (payment.id,), after=after, limit=100)
        awaited += [
            one.transaction_hash
            for one in page.records
            if one.watched and one.receipt_ids and one.chain_id == payment.chain_id
        ]
        if len(awaited) > MAX_AWAITED:
            raise ResourceConflict(
                f"More than {MAX_AWAITED} transfers to the Payment are not final yet."
            )
        after = page.next
        if after is None:
            return tuple(awaited)


def choose_acceptance(payment: Payment) -> Acceptance | None:
    """When the transfer of a refund out of the Payment's escrow counts: as its receipts do."""
    row = payment.early_acceptance
    return row and evolve(row, depth=max(row.depth, payment.confirmations))


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
    decision: Decision[None] = Decision(None)
    freed: dict[str, int] = {}
    for refund in _lock_waiting(tx, step.record, hash):
        withdrawn = withdraw(lock_transfer(tx, refund.outgoing_id))
        assert withdrawn is not None, f"{refund.id} waits, and its transfer does not"
        step = step.then(payments.drop_refund, refund.id, now=now)
        failed = lifecycle.apply_trigger(
            refund, "withdraw", step.record, now=now, failure="funds_reorged", waits_for=()
        )
        decision = decision.merge(failed.as_decision(), Decision(None, replaces=(withdrawn,)))
        if refund.vault_id is not None:
            freed[refund.vault_id] = freed.get(refund.vault_id, 0) + refund.amount_atomic
    for vault_id, amount in freed.items():
        reservation = Reservation(
            vault_id=vault_id,
            asset=step.record.asset,
            amount_atomic=amount,
            counted_at_ms=None,
        )
        decision = decision.merge(void_reservation(tx, reservation))
    return step, decision


def _lock_waiting(tx: Transaction, payment: Payment, hash: str) -> list[Refund]:
    if payment.early_acceptance is None:
        return []
    found = [tx.get(Refund, id, for_update=True) for id in payment.refunding]
    return [refund for refund in found if refund is not None and hash in refund.waits_for]
