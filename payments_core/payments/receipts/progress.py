"""How far a transfer is that does not count yet (contract §13). Pure."""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from payments_core.brief_repr import brief_repr
from payments_core.clock import Instant
from payments_core.networks import Network
from payments_core.payments.receipts.record import Receipt
from payments_core.payments.record import Payment


@attrs.frozen
class ReceiptProgress:
    """The newest transfer of a Payment that does not count yet.

    `confirmations` are the blocks on top of it, and `required` how many there must be; None if the
    chain's own tag decides. At about `estimated_at_ms` it counts; None if nobody knows.
    """

    __repr__ = brief_repr

    receipt_id: str
    confirmations: int
    required: int | None
    estimated_at_ms: Instant | None


def find_progress(
    payment: Payment, receipts: Sequence[Receipt], network: Network | None, latest_height: int
) -> ReceiptProgress | None:
    """The progress of a Payment's transfers; None if none is waited for.

    `latest_height` is the newest block. A vault's transfer waits for the chain's own finality.
    """
    waiting = [
        one for one in receipts
        if one.status == "observed" and one.token_address == payment.token_address
    ]  # fmt: skip
    if not waiting or network is None:
        return None
    receipt = max(waiting, key=lambda one: (one.block_number, one.id))
    early = None if payment.authorized else payment.early_acceptance
    confirmations = 0 if payment.authorized else payment.confirmations
    wait_ms = network.estimate_ms(early, confirmations)
    return ReceiptProgress(
        receipt.id,
        max(0, latest_height - receipt.block_number),
        network.count_required(early, confirmations),
        None if wait_ms is None else receipt.observed_at_ms + wait_ms,
    )
