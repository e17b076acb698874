"""Journal entries and balances as they are stored.

Seven accounts hold a Payment's money. `payer` is the outside world, so its balance is the amount
received, negated: it is at most zero. Funds in `escrow` may still be released, funds
in `excess` can only go back, `recipient` has what was released and not refunded, `fees` the
fees. A payout uses two more: funds at the off-ramp address without an active payout are in
`offramp`, and while a bank has the payout they are in `bank`.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import ClassVar, Literal, get_args

import attrs

from payments_core.brief_repr import brief_repr
from payments_core.clock import Instant
from payments_core.field_views import FieldView, instant_view
from payments_core.money import ZERO, Atomic, atomic
from payments_core.storage.records import Collection, Index, Record

EntryCause = Literal[
    "receipt",
    "receipt_reorged",
    "release",
    "release_reorged",
    "send",
    "send_reorged",
    "refund",
    "refund_reorged",
    "payout_submitted",
    "payout_settled",
    "payout_returned",
]
JournalAccount = Literal["payer", "escrow", "excess", "recipient", "fees", "offramp", "bank"]
JOURNAL_ACCOUNTS: tuple[JournalAccount, ...] = get_args(JournalAccount)


class UnbalancedPostings(AssertionError):
    """Postings that do not add up to zero: a bug, and nothing is committed."""


@attrs.frozen(kw_only=True)
class JournalBalances:
    """The balance of each account of a Payment. The sum is always zero."""

    __repr__ = brief_repr

    payer: Atomic = attrs.field(default=ZERO, converter=atomic)
    escrow: Atomic = attrs.field(default=ZERO, converter=atomic)
    excess: Atomic = attrs.field(default=ZERO, converter=atomic)
    recipient: Atomic = attrs.field(default=ZERO, converter=atomic)
    fees: Atomic = attrs.field(default=ZERO, converter=atomic)
    offramp: Atomic = attrs.field(default=ZERO, converter=atomic)
    bank: Atomic = attrs.field(default=ZERO, converter=atomic)

    def __attrs_post_init__(self) -> None:
        paid_out = self.offramp + self.bank
        if self.payer + self.escrow + self.excess + self.recipient + self.fees + paid_out != 0:
            raise UnbalancedPostings(self)

    @property
    def held_atomic(self) -> int:
        """The funds at the escrow or off-ramp address that belong to nobody yet."""
        return self.escrow + self.excess + self.offramp


@attrs.frozen(kw_only=True, slots=False)
class JournalEntry(Record):
    """One movement, never changed and never removed; the id is `<payment id>/<number>`.

    `postings` add up to zero. `subject` is the receipt, transfer, refund or payout that moved the
    money. `note` says, in a sentence, what a movement means for the partner, if that is a loss.
    """

    collection: ClassVar[Collection] = Collection(
        "journal_entries",
        columns={"payment_id": str, "number": int, "created_at": int},
        indexes=(
            Index("by_payment", key=("payment_id",), order=("number",)),
            Index("by_created", order=("created_at",)),
        ),
        schema=4,
    )

    payment_id: str
    number: int
    cause: EntryCause
    subject: str
    postings: Mapping[str, Atomic]
    note: str | None = None
    created_at_ms: Instant

    created_at: ClassVar[FieldView[datetime]] = instant_view("created_at_ms")
