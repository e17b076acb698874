"""A Payment option as it is stored (interface "Payment option")."""

from __future__ import annotations

from typing import ClassVar

import attrs

from payments_core.clock import Instant
from payments_core.money import ZERO, Atomic, atomic
from payments_core.storage.records import Collection, Index, Record


@attrs.frozen(kw_only=True)
class Option(Record):
    """One offer to fund a Payment from a payer's vault.

    `action_id` is the live one-time action; `used_action_ids` are those that were consumed.
    """

    collection: ClassVar[Collection] = Collection(
        "payment_options",
        columns={"payment_id": str, "created_at": int},
        indexes=(Index("by_payment", key=("payment_id",), order=("created_at",)),),
    )

    payment_id: str
    status: str
    selection_status: str
    payer_account_id: str
    vault_id: str
    vault_address: str
    funding_operation_id: str
    chain_id: int
    asset_symbol: str
    required: Atomic = attrs.field(converter=atomic)
    paid: Atomic = attrs.field(default=ZERO, converter=atomic)
    fee: Atomic = attrs.field(default=ZERO, converter=atomic)
    action_id: str | None = attrs.field(repr=False)
    action_expires_at: Instant | None
    used_action_ids: tuple[str, ...] = attrs.field(default=(), repr=False)
    expires_at: Instant
    created_at: Instant
    updated_at: Instant
