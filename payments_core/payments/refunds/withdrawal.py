"""Withdraws refunds whose funds a reorg removed before the refunds were signed.

A refund from the off-ramp address or from a vault would be paid with other funds that are there. A
refund from escrow waits until its funds are final (`waiting.py`), and is withdrawn only until then.
"""

from __future__ import annotations

from collections.abc import Iterable

from payments_core.accounts.vaults.reservations import Reservation, void_reservation
from payments_core.chains.outbox.record import lock_transfer, withdraw_unsigned
from payments_core.clock import Instant
from payments_core.engine.decision import Decision
from payments_core.engine.step import Step
from payments_core.payments import lifecycle as payments
from payments_core.payments.record import Payment
from payments_core.payments.refunds import lifecycle
from payments_core.payments.refunds.record import Refund
from payments_core.storage.port import Transaction


def withdraw_unfunded_refunds(
    tx: Transaction, step: Step[Payment], *, now: Instant
) -> Decision[None]:
    """The step of a locked Payment whose transfer to the recipient, or to the off-ramp address, a
    reorg undid, and the end of the refunds that rely on it.

    A signed refund continues, since a node may have it; the journal then shows what is missing.
    """
    found = [tx.get(Refund, id, for_update=True) for id in step.record.refunding]
    relying = [
        refund for refund in found
        if refund is not None and (refund.from_offramp_atomic or refund.from_recipient_atomic)
    ]  # fmt: skip
    step, ended = withdraw_unsigned_refunds(tx, step, relying, now=now)
    return step.as_decision().merge(ended)


def withdraw_unsigned_refunds(
    tx: Transaction,
    step: Step[Payment],
    refunds: Iterable[Refund],
    *,
    now: Instant,
    trigger: str = "withdraw",
    failure: str = "funds_reorged",
) -> tuple[Step[Payment], Decision[None]]:
    """The step of a locked Payment without those of its locked refunds that are not signed.

    They end by `trigger`, with the `failure`.
    """
    decision: Decision[None] = Decision(None)
    freed: dict[str, int] = {}
    for refund in refunds:
        outgoing = lock_transfer(tx, refund.outgoing_id)
        stopped = withdraw_unsigned(outgoing) if refund.status == "created" else None
        if stopped is None:
            continue
        step = step.then(payments.drop_refund, refund.id, now=now)
        failed = lifecycle.apply_trigger(
            refund, trigger, step.record, now=now, failure=failure, waits_for=()
        )
        decision = decision.merge(failed.as_decision(), Decision(None, replaces=(stopped,)))
        if refund.vault_id is not None:
            freed[refund.vault_id] = freed.get(refund.vault_id, 0) + refund.amount_atomic
    for vault_id, amount in freed.items():
        reservation = Reservation(
            vault_id=vault_id, asset=step.record.asset, amount_atomic=amount, counted_at_ms=None
        )
        decision = decision.merge(void_reservation(tx, reservation))
    return step, decision
