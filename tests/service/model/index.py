"""The records by what they belong to, and what keeps a vault's funds reserved."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator

from payments_core.payments.funding.record import FundingOperation
from payments_core.payments.journal.record import JournalEntry
from payments_core.payments.receipts.record import Receipt
from payments_core.payments.record import Payment
from payments_core.payments.refunds.record import Refund
from payments_core.storage.records import Record
from tests.service.model.mirror import Commit

LIVE_OPERATION = ("authorized", "broadcast", "unknown")
LIVE_SEND = ("processing", "executing")
LIVE_REFUND = ("created", "submitted")

Wrong = Iterator[str]
"""What an invariant finds wrong, in words."""


class Index:
    """The records by what they belong to, kept up with the commits."""

    def __init__(self) -> None:
        self.entries: dict[str, dict[str, JournalEntry]] = defaultdict(dict)
        self.receipts: dict[str, dict[str, Receipt]] = defaultdict(dict)
        self.refunds: dict[str, dict[str, Refund]] = defaultdict(dict)
        self.logs: dict[tuple[int, str, int], str] = {}
        self.references: dict[str, str] = {}
        self.reserved: Counter[str] = Counter()

    def keep_up(self, commit: Commit) -> None:
        """Take in a commit."""
        for before, after in commit.changes:
            if before is not None:
                for balance, amount in reservations(before):
                    self.reserved[balance] -= amount
            if after is not None:
                for balance, amount in reservations(after):
                    self.reserved[balance] += amount
            if isinstance(after, JournalEntry):
                self.entries[after.payment_id][after.id] = after
            elif isinstance(after, Receipt):
                self.receipts[after.payment_id][after.id] = after
            elif isinstance(after, Refund):
                self.refunds[after.payment_id][after.id] = after


def _draws(payment: Payment) -> bool:
    """A send whose transfer is not over; a payout goes on without one."""
    is_funded = payment.payout is not None and payment.payout.funded_at_ms is not None
    return payment.intent == "send" and payment.status in LIVE_SEND and not is_funded


def reservations(record: Record) -> Iterable[tuple[str, int]]:
    """What a record keeps reserved, by the id of the balance."""
    if isinstance(record, FundingOperation) and record.status in LIVE_OPERATION:
        yield f"{record.vault_id}/{record.asset_symbol}", record.amount_atomic
    if isinstance(record, Payment) and _draws(record):
        assert record.source is not None
        yield f"{record.source.vault_id}/{record.asset_symbol}", record.amount_atomic
    if isinstance(record, Refund) and record.vault_id and record.status in LIVE_REFUND:
        yield f"{record.vault_id}/{record.asset_symbol}", record.amount_atomic
