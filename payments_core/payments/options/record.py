"""Payment options as they are stored (interface "Payment option", contract §6)."""

from __future__ import annotations

from typing import ClassVar

import attrs

from payments_core.clock import Instant
from payments_core.money import ZERO, Atomic, atomic
from payments_core.storage.records import Collection, Record


@attrs.frozen(kw_only=True, slots=False)
class Option(Record):
    """One offer to fund a Payment from a payer's vault.

    `action_id` is the live one-time action; `used_action_ids` are those that were consumed.
    """

    collection: ClassVar[Collection] = Collection(
        "payment_options",
        columns={"payment_id": str, "created_at": int},  # the previous release has an index on them
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


@attrs.frozen(kw_only=True)
class Submission:
    """A payer's claim that a transaction pays: only a hint where to look."""

    chain_id: int
    transaction_hash: str
    submitted_at: Instant


@attrs.frozen(kw_only=True, slots=False)
class DirectOption(Record):
    """A payer's intent to pay from any wallet, straight into the Payment's escrow.

    `required` is the remaining amount of the Payment when the option was made or refreshed, `paid`
    the sum of the verified receipts by this option. `sighted` holds the evidence of its transfers
    that are not final. Without a `selection_status` it was never selected.
    """

    collection: ClassVar[Collection] = Collection(
        "direct_options",
        columns={"payment_id": str, "created_at": int},  # the previous release has an index on them
    )

    payment_id: str
    status: str
    selection_status: str | None = None
    payer_address: str | None = None
    chain_id: int
    asset_symbol: str
    required: Atomic = attrs.field(converter=atomic)
    paid: Atomic = attrs.field(default=ZERO, converter=atomic)
    sighted: tuple[str, ...] = ()
    submissions: tuple[Submission, ...] = ()
    expires_at: Instant
    created_at: Instant
    updated_at: Instant
