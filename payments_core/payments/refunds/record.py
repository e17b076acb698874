"""A refund as it is stored (contract §6)."""

from __future__ import annotations

from typing import ClassVar, Literal

import attrs

from payments_core.clock import Instant
from payments_core.money import ZERO, Atomic, atomic
from payments_core.networks import Asset, pin_token
from payments_core.storage.records import Collection, Index, Record

Purpose = Literal["refund", "reconcile_refund", "refund_excess"]
"""The origin: a requested refund, or one of the two decisions of a reconciliation."""

PENDING = ("created", "submitted")


@attrs.frozen(kw_only=True, slots=False)
class Refund(Record):
    """One transfer back. The accounts of the Payment's books that it uses are fixed at creation.

    `vault_id` is set if the recipient's vault pays. `claimed` says of a succeeded refund that
    its destination was a sender, whose claim it reduced.
    """

    collection: ClassVar[Collection] = Collection(
        "refunds",
        columns={
            "payment_id": str,
            "destination": str,
            "chain_id": int,
            "status": str,
            "created_at": int,
        },
        indexes=(
            Index("by_payment", key=("payment_id",), order=("created_at",), descending=True),
            Index("by_destination", key=("destination",), order=("created_at",), descending=True),
        ),
        schema=3,
        upgrades={1: dict, 2: pin_token},
        oldest_reader=1,
    )

    payment_id: str
    purpose: Purpose
    status: str
    status_version: int
    chain_id: int
    asset_symbol: str
    token_address: str
    decimals: int
    from_escrow: Atomic = attrs.field(default=ZERO, converter=atomic)
    from_excess: Atomic = attrs.field(default=ZERO, converter=atomic)
    from_recipient: Atomic = attrs.field(default=ZERO, converter=atomic)
    from_offramp: Atomic = attrs.field(default=ZERO, converter=atomic)
    destination: str
    reason: str | None = None
    outgoing_id: str
    vault_id: str | None = None
    transaction_hash: str | None = None
    failure: str | None = None
    claimed: bool = False
    created_at: Instant
    updated_at: Instant
    succeeded_at: Instant | None = None

    @property
    def amount(self) -> int:
        """The amount that goes back."""
        return self.from_escrow + self.from_excess + self.from_recipient + self.from_offramp

    @property
    def sources(self) -> dict[str, int]:
        """The amount taken from each account of the books."""
        parts = {
            "escrow": self.from_escrow,
            "excess": self.from_excess,
            "recipient": self.from_recipient,
            "offramp": self.from_offramp,
        }
        return {name: amount for name, amount in parts.items() if amount}

    @property
    def asset(self) -> Asset:
        """The asset of the amount."""
        return Asset(self.chain_id, self.asset_symbol, self.token_address, self.decimals)
