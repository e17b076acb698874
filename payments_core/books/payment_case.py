"""A Payment with all that was recorded of it, and the transfers that a chain must have for it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs

from payments_core.chains.outbox.record import OutboundTransfer
from payments_core.payments.journal.record import JournalEntry
from payments_core.payments.receipts.record import Receipt
from payments_core.payments.record import Payment
from payments_core.payments.refunds.record import Refund
from payments_core.storage.port import Position, Snapshot
from payments_core.storage.reads import Find, Get
from payments_core.storage.records import R

PER_PAYMENT = 50
"""How many rows of a kind a Payment's first page has; nearly all have fewer."""


@attrs.frozen
class PaymentCase:
    """A Payment as one snapshot had it. `release` is its transfer to the recipient, if any."""

    payment: Payment
    entries: tuple[JournalEntry, ...]
    receipts: tuple[Receipt, ...]
    refunds: tuple[Refund, ...]
    release: OutboundTransfer | None

    @property
    def is_released(self) -> bool:
        """Whether the transfer to the recipient, or to the off-ramp address, is final.

        What goes to a router has reached its recipient only when the router has delivered it.
        """
        payment = self.payment
        if payment.release_id is None:
            return False
        if payment.route is not None:
            return payment.route.delivery_hash is not None
        sent = self.release
        is_final = sent is not None and sent.status == "signed" and sent.block_number is not None
        return is_final or payment.settled_atomic > 0


@attrs.frozen(kw_only=True)
class WantedTransfer:
    """A transfer that a transaction must have. A receipt's is known by its `position`."""

    subject: str
    chain_id: int
    hash: str
    token_address: str
    recipient: str
    amount_atomic: int
    position: int | None = None


def load_cases(snapshot: Snapshot, payments: Sequence[Payment]) -> list[PaymentCase]:
    """The Payments with their records, all of one snapshot."""
    ids = [payment.id for payment in payments]
    kinds: tuple[type[JournalEntry | Receipt | Refund], ...] = (JournalEntry, Receipt, Refund)
    releases = [payment.release_id for payment in payments if payment.release_id]
    snapshot.read_ahead(
        *(Find(kind, "by_payment", (id,), PER_PAYMENT) for id in ids for kind in kinds),
        *(Get(OutboundTransfer, id) for id in releases),
    )
    return [
        PaymentCase(
            payment,
            _find_all(snapshot, JournalEntry, payment.id),
            _find_all(snapshot, Receipt, payment.id),
            _find_all(snapshot, Refund, payment.id),
            snapshot.get(OutboundTransfer, payment.release_id) if payment.release_id else None,
        )
        for payment in payments
    ]


def _find_all(snapshot: Snapshot, kind: type[R], payment_id: str) -> tuple[R, ...]:
    found: list[R] = []
    after: Position | None = None
    while True:
        page = snapshot.find(kind, "by_payment", (payment_id,), after=after, limit=PER_PAYMENT)
        found += page.records
        after = page.next
        if after is None:
            return tuple(found)


def iter_wanted(case: PaymentCase) -> Iterator[WantedTransfer]:
    """The transfers that the chains must have, by the records of a Payment."""
    payment = case.payment
    for receipt in case.receipts:
        if receipt.status == "verified":
            yield WantedTransfer(
                subject=receipt.id,
                chain_id=receipt.chain_id,
                hash=receipt.transaction_hash,
                token_address=receipt.token_address,
                recipient=receipt.recipient,
                amount_atomic=receipt.amount_atomic,
                position=receipt.position,
            )
    if case.is_released and payment.release_id and payment.release_hash:
        yield WantedTransfer(
            subject=payment.release_id,
            chain_id=payment.chain_id,
            hash=payment.release_hash,
            token_address=payment.token_address,
            recipient=payment.payout_address,
            amount_atomic=payment.released_atomic - payment.fee_atomic,
        )
    route = payment.route
    if route is not None and route.delivery_hash is not None:
        yield WantedTransfer(
            subject=f"delivery of {payment.id}",
            chain_id=route.chain_id,
            hash=route.delivery_hash,
            token_address=route.token_address,
            recipient=payment.destination.address,
            amount_atomic=route.delivered_atomic,
        )
    for refund in case.refunds:
        if refund.status == "succeeded" and refund.transaction_hash:
            yield WantedTransfer(
                subject=refund.id,
                chain_id=refund.chain_id,
                hash=refund.transaction_hash,
                token_address=refund.token_address,
                recipient=refund.destination,
                amount_atomic=refund.amount_atomic,
            )
