"""A receipt as it is stored (contract §6 "Receipts")."""

from __future__ import annotations

from typing import ClassVar, Literal

import attrs

from payments_core.chains.judge import Reason
from payments_core.clock import Instant
from payments_core.money import Atomic, atomic
from payments_core.storage.records import Collection, Index, Record, Unique

ReceiptStatus = Literal["observed", "verified", "rejected", "reorged"]


@attrs.frozen(kw_only=True)
class Receipt(Record):
    """One transfer log, counted once for ever.

    The key is the log's position within its transaction, which survives a reorg; `log_index` is
    the block's, as the chain reported it. Recipients differ between environments, so the key
    within one partition is a key for the deployment.
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
        indexes=(Index("by_payment", key=("payment_id",), order=("observed_at",)),),
        uniques=(Unique("log", ("chain_id", "transaction_hash", "position")),),
    )

    payment_id: str
    option_id: str
    chain_id: int
    transaction_hash: str
    position: int
    log_index: int
    token_address: str
    sender: str
    recipient: str
    amount: Atomic = attrs.field(converter=atomic)
    block_number: int
    block_hash: str
    status: ReceiptStatus
    rejection_reason: Reason | None = None
    observed_at: Instant
    verified_at: Instant | None = None
