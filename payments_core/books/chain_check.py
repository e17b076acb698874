"""What the chains have, against the records. Pure: the chains were read before."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

from payments_core.books.differences import Difference, differ
from payments_core.books.payment_case import PaymentCase, WantedTransfer
from payments_core.chains.port import TransactionView, TransferLog
from payments_core.clock import HOUR, Instant
from payments_core.networks import Asset
from payments_core.onramps.record import BankTransaction
from payments_core.payments.record import Payment

SETTLES_WITHIN_MS = 1 * HOUR
"""So long after its last change, a chain may be ahead of the records of a Payment."""

_MOVING = ("processing", "accepted", "executing")

Views = Mapping[tuple[int, str], TransactionView | None]
"""Transactions by chain and hash, as the chains showed them; None if a chain has none."""


def check_transfers(
    resource_id: str, asset: Asset, wanted: Sequence[WantedTransfer], views: Views
) -> Iterator[Difference]:
    """The transfers that the chain does not have as they were recorded."""
    for one in wanted:
        found = _find_log(one, views.get((one.chain_id, one.hash)))
        if found is None:
            detail = f"chain {one.chain_id} has no such transfer in transaction {one.hash}"
            yield differ(
                "chain_missing", resource_id, one.subject, asset, one.amount_atomic, 0, detail
            )
        elif found.amount_atomic != one.amount_atomic:
            detail = f"transaction {one.hash} of chain {one.chain_id} has another amount"
            yield differ(
                "chain_amount",
                resource_id,
                one.subject,
                asset,
                one.amount_atomic,
                found.amount_atomic,
                detail,
            )


def check_further_logs(case: PaymentCase, views: Views) -> Iterator[Difference]:
    """Transfers to the escrow, in transactions that were counted, that no receipt has."""
    payment = case.payment
    known = {(one.chain_id, one.transaction_hash, one.position) for one in case.receipts}
    for chain_id, hash in sorted({(one.chain_id, one.transaction_hash) for one in case.receipts}):
        view = views.get((chain_id, hash))
        for log in view.logs if view is not None and view.succeeded else ():
            is_ours = (log.recipient, log.token_address) == (
                payment.escrow_address,
                payment.token_address,
            )
            if is_ours and (chain_id, hash, log.position) not in known:
                detail = f"transaction {hash} has a further transfer to the escrow"
                yield differ(
                    "chain_extra", payment.id, hash, payment.asset, 0, log.amount_atomic, detail
                )


def is_quiet(payment: Payment, now: Instant) -> bool:
    """Whether nothing of a Payment is on its way, so that its escrow has what its books say."""
    return not (
        payment.status in _MOVING
        or payment.is_pending
        or payment.refunding
        or payment.unsettled
        or now - payment.updated_at_ms < SETTLES_WITHIN_MS
    )


def is_quiet_transaction(transaction: BankTransaction, now: Instant) -> bool:
    """The same of a bank transfer: its own escrow has what its books say."""
    is_over = transaction.status in ("settled", "refunded", "failed")
    return is_over and now - transaction.updated_at_ms >= SETTLES_WITHIN_MS


def check_escrow(
    resource_id: str, address: str, asset: Asset, booked: int, held: int
) -> Iterator[Difference]:
    """What an escrow holds, against the books. A loss leaves the books below zero."""
    expected = max(0, booked)
    if held != expected:
        kind: Literal["chain_extra", "chain_missing"]
        kind, much = ("chain_extra", "more") if held > expected else ("chain_missing", "less")
        detail = f"{address} holds {much} on chain {asset.chain_id} than the books say"
        yield differ(kind, resource_id, address, asset, expected, held, detail)


def book_escrow(payment: Payment) -> int:
    """What the escrow of a Payment holds by its books; fees stay there."""
    return payment.books.escrow + payment.books.excess + payment.books.fees


def _find_log(wanted: WantedTransfer, view: TransactionView | None) -> TransferLog | None:
    """The transfer that was recorded, else one to the same recipient of another amount."""
    if view is None or view.block is None or not view.succeeded:
        return None
    fitting = [
        log
        for log in view.logs
        if (log.token_address, log.recipient) == (wanted.token_address, wanted.recipient)
        and wanted.position in (None, log.position)
    ]
    same = [log for log in fitting if log.amount_atomic == wanted.amount_atomic]
    return next(iter(same or fitting), None)
