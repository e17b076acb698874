"""Withdraws refunds whose funds a reorg removed before the refunds were sent.

They would be paid from the off-ramp address, which holds the funds of other payouts too. Other
refunds wait until their funds are final (`waiting.py`).
"""

from __future__ import annotations

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
    """The step of a locked Payment whose off-ramp funds a reorg undid, and the end of its refunds.

    A signed refund continues, since a node may have it; the journal then shows what is missing at
    the off-ramp address.
    """
    decision: Decision[None] = Decision(None)
    for refund_id in step.record.refunding:
        refund = tx.get(Refund, refund_id, for_update=True)
        assert refund is not None, f"no refund {refund_id}"
        if not refund.from_offramp_atomic or refund.status != "created":
            continue
        stopped = withdraw_unsigned(lock_transfer(tx, refund.outgoing_id))
        if stopped is None:
            continue
        step = step.then(payments.drop_refund, refund.id, now=now)
        failed = lifecycle.apply_trigger(
            refund, "withdraw", step.record, now=now, failure="funds_reorged"
        )
        decision = decision.merge(failed.as_decision(), Decision(None, replaces=(stopped,)))
    return step.as_decision().merge(decision)
