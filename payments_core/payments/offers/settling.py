"""A provider's delivery and the receipt that proves it: whose it is, and who gets a refund of it.

The sender of a delivery is the provider's wallet, or nobody if the token was minted. The payer of
a routed option is known by its `refund_address`; a buyer at an on-ramp by nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

from payments_core.clock import Instant
from payments_core.engine.decision import Decision
from payments_core.evolve import evolve
from payments_core.payments.options import lifecycle as options
from payments_core.payments.options.record import PaymentOption
from payments_core.payments.payer_totals import move_payment
from payments_core.payments.receipts.discovery import track_transaction
from payments_core.payments.receipts.record import (
    Receipt,
    TrackedTransaction,
    tracked_transaction_id,
)
from payments_core.payments.record import Payment
from payments_core.payments.tracking.attribution import HINT_TTL_MS
from payments_core.storage.port import Transaction


def settle_delivery(
    tx: Transaction, payment: Payment, option: PaymentOption, hash: str, *, now: Instant
) -> tuple[PaymentOption, Decision[None]]:
    """The option after its provider named a transaction to the escrow, and what follows.

    A transaction that no scan has found is looked for. One that was found before may count by
    another option: then this one waits no longer for it.
    """
    id = tracked_transaction_id(payment.id, payment.chain_id, hash)
    tracked = tx.get(TrackedTransaction, id, for_update=True)
    if tracked is None:
        return option, track_transaction(
            tx, payment.id, payment.chain_id, hash,
            now=now, due_at=now, hinted_until=now + HINT_TTL_MS,
        )  # fmt: skip
    is_anothers = tracked.option_id not in (None, option.id)
    if is_anothers and option.status == "processing" and not option.sighted:
        option = options.apply_trigger(option, "reopen", now=now).record
    if option.refund_address is None:
        return option, Decision(None)
    found = tx.get_many(Receipt, tracked.receipt_ids, for_update=True).values()
    return option, _credit_payer(payment, found, option.refund_address)


def _credit_payer(payment: Payment, receipts: Iterable[Receipt], refund_to: str) -> Decision[None]:
    """Receipts that were counted for the provider's wallet count for its payer.

    A sender that has got a part back is left as it is: a refund then needs a destination.
    """
    changed: list[Receipt] = []
    paid_by = payment.paid_by
    for receipt in receipts:
        if receipt.refund_to is not None:
            continue
        if receipt.status == "verified":
            over = receipt.amount_atomic - receipt.counted_atomic
            moved = move_payment(paid_by, receipt.sender, refund_to, receipt.amount_atomic, over)
            if moved is None:
                continue
            paid_by = moved
        changed.append(evolve(receipt, refund_to=refund_to))
    if paid_by == payment.paid_by:
        return Decision(None, replaces=tuple(changed))
    return Decision(None, replaces=(*changed, evolve(payment, paid_by=paid_by)))
