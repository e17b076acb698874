"""A receipt as it is stored (contract §6 "Receipts")."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

import attrs

from payments_core.chains.judge import Reason as Reason
from payments_core.clock import Instant
from payments_core.field_views import FieldView, instant_view, optional_instant_view
from payments_core.misdirected.record import SentBack
from payments_core.money import ZERO, Atomic, atomic
from payments_core.networks import Asset, shipped_networks
from payments_core.storage.records import Collection, Document, Index, Lookup, Record, Unique


def _pin_noticed_token(document: Document) -> Document:
    """The token was found by its address in a table of the code."""
    token = shipped_networks().identify_token(document["chain_id"], document["token_address"])
    return (
        document
        if token is None
        else {**document, "asset_symbol": token.symbol, "decimals": token.decimals}
    )


@attrs.frozen(kw_only=True, slots=False)
class Receipt(Record):
    """One transfer log, counted exactly once.

    The key is the log's position within its transaction, which survives a reorg; `log_index` is the
    block's, as the chain reported it. The Payment is in the key, since after a reorg the log at
    that position may pay another one; no two Payments share an escrow, so it is a key for the
    deployment. `counted_atomic` is the part of `amount_atomic` that the release may take;
    `option_id` is None for a receipt by no option. `sent_back` is the way back of a misdirected
    receipt, if it was requested; the Payment's books know nothing of it. `is_from_contract` says
    whether a contract sent it, as the chain knew when it was final; None if the chain cannot say
    it. `refund_to` is the payer's own address if a router has sent it. `asset_symbol` and
    `decimals` are the token's, if it was registered when the transfer was seen.
    """

    collection: ClassVar[Collection] = Collection(
        "receipts",
        columns={
            "payment_id": str,
            "chain_id": int,
            "transaction_hash": str,
            "position": int,
            "observed_at": int,
        },
        indexes=(
            Index("by_payment", key=("payment_id",), order=("observed_at",)),
            Index("by_transaction", key=("transaction_hash",)),
        ),
        uniques=(Unique("log", ("payment_id", "chain_id", "transaction_hash", "position")),),
        schema=5,
        upgrades={3: _pin_noticed_token},
    )

    payment_id: str
    option_id: str | None
    chain_id: int
    transaction_hash: str
    position: int
    log_index: int
    token_address: str
    asset_symbol: str | None = None
    decimals: int = 0
    sender: str
    recipient: str
    amount_atomic: Atomic = attrs.field(converter=atomic)
    block_number: int
    block_hash: str
    counted_atomic: Atomic = attrs.field(default=ZERO, converter=atomic)
    status: str
    rejection_reason: Reason | None = None
    observed_at_ms: Instant
    verified_at_ms: Instant | None = None
    sent_back: SentBack | None = None
    is_from_contract: bool | None = None
    refund_to: str | None = None

    observed_at: ClassVar[FieldView[datetime]] = instant_view("observed_at_ms")
    verified_at: ClassVar[FieldView[datetime | None]] = optional_instant_view("verified_at_ms")

    @property
    def payer(self) -> str:
        """The address that its refund goes to, if none is named."""
        return self.refund_to or self.sender

    @property
    def token(self) -> Asset | None:
        """The token that arrived; None if nobody knew it, not even the watch list."""
        if self.asset_symbol is None:
            return None
        return Asset(self.chain_id, self.asset_symbol, self.token_address, self.decimals)

    @property
    def is_misdirected(self) -> bool:
        """Whether it is final, holds something of worth, and cannot count for its Payment.

        A token that nobody knows is of no worth: anybody can make one.
        """
        return (
            self.status == "rejected"
            and self.rejection_reason in ("wrong_chain", "wrong_token")
            and self.amount_atomic > 0
            and self.token is not None
        )

    @property
    def holds_misdirected(self) -> bool:
        """Whether its misdirected funds are still at the escrow, or may come back to it."""
        is_back = self.sent_back is not None and self.sent_back.status == "succeeded"
        return self.is_misdirected and not is_back


def _join_option_id(document: Document) -> Document:
    """A stranger's option had a field of its own."""
    rest = {name: value for name, value in document.items() if name != "direct_option_id"}
    sending = document.get("option_id")
    option_id = document.get("direct_option_id") if sending is None else sending
    return {**rest, "option_id": option_id, "is_ours": sending is not None}


@attrs.frozen(kw_only=True, slots=False)
class TrackedTransaction(Record):
    """A transaction that concerns a Payment; the id is `<payment id>/<chain>/<hash>`.

    A scan, our own sending or a hint that finds a transaction writes this row and the job that
    checks it. `receipt_ids` are the receipts of its logs. `option_id` is the option that it
    pays: `is_ours` says that the option's operation sent it; a stranger's is attributed to one.
    If only a payer's hint reports it, it is looked for until `hinted_until`.
    `block_number` is where it was last seen, and `block_hash` is None once that block was undone;
    `block_time` is known after the first check. `found_in` is the block in which a scan found a
    transfer to the escrow.
    `amount_atomic` is what its transfers bring the Payment there, final or not.
    While it is `watched` there is a job that follows it; a reorg of its block makes it watched
    again.
    """

    collection: ClassVar[Collection] = Collection(
        "evidence",
        columns={"payment_id": str, "chain_id": int, "block_number": int},
        indexes=(Index("by_payment", key=("payment_id",)),),
        lookups=(Lookup("by_block", ("chain_id", "block_number")),),
        schema=5,
        upgrades={3: _join_option_id},
    )

    payment_id: str
    chain_id: int
    transaction_hash: str
    option_id: str | None = None
    is_ours: bool = False
    hinted_until_ms: Instant | None = None
    receipt_ids: tuple[str, ...] = ()
    block_number: int | None = None
    block_hash: str | None = None
    block_time: Instant | None = None
    found_in: str | None = None
    amount_atomic: Atomic = attrs.field(default=ZERO, converter=atomic)
    watched: bool = True
    created_at_ms: Instant

    hinted_until: ClassVar[FieldView[datetime | None]] = optional_instant_view("hinted_until_ms")
    created_at: ClassVar[FieldView[datetime]] = instant_view("created_at_ms")

    @property
    def sending_option_id(self) -> str | None:
        """The option whose operation sent it; None for a stranger's transaction."""
        return self.option_id if self.is_ours else None


def tracked_transaction_id(payment_id: str, chain_id: int, transaction_hash: str) -> str:
    """The id of a transaction's evidence for a Payment."""
    return f"{payment_id}/{chain_id}/{transaction_hash}"
