"""What arrives at an escrow and does not count: the steps of its Payment. Pure.

Another token than the Payment's, or its token on another chain, is never in the Payment's books:
it is held at the escrow, and can only be sent back. The receipt carries the way back; the Payment
counts the receipts that still hold such funds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from payments_core.clock import Instant
from payments_core.engine.step import Step
from payments_core.evolve import evolve
from payments_core.payments.lifecycle import AWAITING_DECISION, apply_trigger
from payments_core.payments.receipts.record import Receipt
from payments_core.payments.record import Payment, Reconciliation


def follow_receipts(
    step: Step[Payment], before: Sequence[Receipt], after: Sequence[Receipt], *, now: Instant
) -> Step[Payment]:
    """The Payment after a look that turned the receipts `before` into those `after`."""
    known = {receipt.id: receipt for receipt in before}
    for receipt in after:
        earlier = known.get(receipt.id)
        was_held = earlier is not None and earlier.holds_misdirected
        if receipt.holds_misdirected and (not was_held or _facts(receipt) != _facts(earlier)):
            step = step.then(report, receipt, more=0 if was_held else 1, now=now)
        elif was_held and not receipt.holds_misdirected:
            step = step.then(undo, now=now)
    return step


def report(payment: Payment, receipt: Receipt, *, more: int, now: Instant) -> Step[Payment]:
    """Misdirected funds are there: `more` says how many receipts hold some besides those known."""
    holding = evolve(payment, misdirected=payment.misdirected + more)
    return apply_trigger(holding, "misdirected", now=now, details=_facts(receipt))


def undo(payment: Payment, *, now: Instant) -> Step[Payment]:
    """A reorg undid the transfer that had brought misdirected funds."""
    left = evolve(payment, misdirected=payment.misdirected - 1)
    step = apply_trigger(left, "misdirected_reorged", now=now)
    if not _is_decided(left):
        return step
    return evolve(step, record=evolve(step.record, reconciliation=Reconciliation()))


def note_sent_back(payment: Payment, *, now: Instant, note: str | None = None) -> Step[Payment]:
    """Misdirected funds are back; the reconciliation is resolved if nothing else is open."""
    left = evolve(payment, misdirected=payment.misdirected - 1)
    resolution = "return_misdirected" if _is_decided(left) else None
    return apply_trigger(left, "return_misdirected", now=now, resolution=resolution, note=note)


def _is_decided(payment: Payment) -> bool:
    """Whether nothing is left of which a partner must decide."""
    awaits = payment.status in AWAITING_DECISION and payment.books.held_atomic
    return not (
        awaits
        or payment.excess_atomic
        or payment.misdirected
        or payment.status == "action_required"
    )


def _facts(receipt: Receipt | None) -> dict[str, Any]:
    """The fields of the event that are of the receipt."""
    if receipt is None:
        return {}
    token = receipt.token
    return {
        "receiptId": receipt.id,
        "reason": receipt.rejection_reason,
        "chainId": receipt.chain_id,
        "assetSymbol": token.symbol if token else None,
        "tokenAddress": receipt.token_address,
        "amountAtomic": str(receipt.amount_atomic),
        "from": receipt.sender,
    }
