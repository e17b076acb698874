"""A refund as it is stored (contract §6)."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar, Literal

import attrs

from payments_core.acceptance import Acceptance
from payments_core.clock import Instant
from payments_core.field_views import FieldView, amount_view, instant_view, optional_instant_view
from payments_core.money import ZERO, Atomic, atomic
from payments_core.networks import Asset, pin_token
from payments_core.storage.records import Collection, Index, Record

Purpose = Literal["refund", "reconcile_refund", "refund_excess"]
"""The origin: a requested refund, or one of the two decisions of a reconciliation."""

PENDING = ("created", "submitted")


@attrs.frozen(kw_only=True, slots=False)
class Refund(Record):
    """One transfer back. The accounts of the Payment's books that it uses are fixed at creation.

    `vault_id` is set if the recipient's vault pays. `in_review` says that screening has not cleared
    its destination yet: it waits, unsigned. `claimed` says of a succeeded refund that
    its destination was a sender, whose claim it reduced. `waits_for` has the hashes of the
    transactions that must be final before it is sent (`waiting.py`). `early_acceptance` is the row
    by which its own transfer counts, if that is not the chain's own finality.

    >>> [(refund.status, refund.reason) for refund in shop.payments.list_refunds(paid.id).records]
    [('created', 'returned')]
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
        schema=6,
        upgrades={3: pin_token},
    )

    payment_id: str
    purpose: Purpose
    status: str
    status_version: int
    chain_id: int
    asset_symbol: str
    token_address: str = attrs.field(repr=False)
    decimals: int = attrs.field(repr=False)
    from_escrow_atomic: Atomic = attrs.field(default=ZERO, converter=atomic)
    from_excess_atomic: Atomic = attrs.field(default=ZERO, converter=atomic)
    from_recipient_atomic: Atomic = attrs.field(default=ZERO, converter=atomic)
    from_offramp_atomic: Atomic = attrs.field(default=ZERO, converter=atomic)
    destination: str
    reason: str | None = None
    outgoing_id: str
    vault_id: str | None = None
    transaction_hash: str | None = None
    failure: str | None = None
    claimed: bool = False
    in_review: bool = False
    waits_for: tuple[str, ...] = attrs.field(default=(), repr=False)
    early_acceptance: Acceptance | None = attrs.field(default=None, repr=False)
    created_at_ms: Instant
    updated_at_ms: Instant
    succeeded_at_ms: Instant | None = None

    amount: ClassVar[FieldView[str]] = amount_view("amount_atomic")
    created_at: ClassVar[FieldView[datetime]] = instant_view("created_at_ms")
    updated_at: ClassVar[FieldView[datetime]] = instant_view("updated_at_ms")
    succeeded_at: ClassVar[FieldView[datetime | None]] = optional_instant_view("succeeded_at_ms")

    @property
    def amount_atomic(self) -> int:
        """The amount that goes back."""
        return (
            self.from_escrow_atomic
            + self.from_excess_atomic
            + self.from_recipient_atomic
            + self.from_offramp_atomic
        )

    @property
    def sources(self) -> dict[str, int]:
        """The amount taken from each account of the books."""
        parts = {
            "escrow": self.from_escrow_atomic,
            "excess": self.from_excess_atomic,
            "recipient": self.from_recipient_atomic,
            "offramp": self.from_offramp_atomic,
        }
        return {name: amount for name, amount in parts.items() if amount}

    @property
    def asset(self) -> Asset:
        """The asset of the amount."""
        return Asset(self.chain_id, self.asset_symbol, self.token_address, self.decimals)
