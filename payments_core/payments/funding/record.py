"""A funding operation as it is stored (interface "Vault funding operation")."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, ClassVar

import attrs

from payments_core.clock import Instant
from payments_core.field_views import FieldView, instant_view, optional_instant_view
from payments_core.money import Atomic, atomic
from payments_core.storage.records import Collection, Index, Record


@attrs.frozen(kw_only=True, slots=False)
class FundingOperation(Record):
    """The transfer that an option's authorization allows, exactly once.

    `policy_version` is the version of the vault's policy that the authorization passed.
    `settles_quote` is the quote whose signed settlement authorized this.

    >>> made = shop.payments.receive(order).payment
    >>> option = browser.options.create(made.id).option
    >>> browser.options.authorize(made.id, option.id, action_id=option.action_id).operation
    FundingOperation(id='...', status='authorized', payment_id='payment_...', ...)
    """

    collection: ClassVar[Collection] = Collection(
        "funding_operations",
        columns={
            "payment_id": str,  # the previous release has an index on it
            "vault_id": str,
            "status": str,
            "authorized_at": int,
            "settlement": int,
            "created_at": int,
        },
        indexes=(Index("by_vault", key=("vault_id",), order=("created_at",), descending=True),),
        schema=3,
    )

    payment_id: str
    option_id: str
    vault_id: str
    status: str
    status_version: int
    amount_atomic: Atomic = attrs.field(converter=atomic)
    chain_id: int
    asset_symbol: str
    outgoing_id: str | None = None
    transaction_hash: str | None = None
    policy_version: int | None = None
    metadata: Mapping[str, Any] | None = None
    failure: str | None = None
    settles_quote: str | None = None
    authorized_at_ms: Instant | None = None
    broadcast_at_ms: Instant | None = None
    confirmed_at_ms: Instant | None = None
    expires_at_ms: Instant | None = None
    created_at_ms: Instant
    updated_at_ms: Instant

    authorized_at: ClassVar[FieldView[datetime | None]] = optional_instant_view("authorized_at_ms")
    broadcast_at: ClassVar[FieldView[datetime | None]] = optional_instant_view("broadcast_at_ms")
    confirmed_at: ClassVar[FieldView[datetime | None]] = optional_instant_view("confirmed_at_ms")
    expires_at: ClassVar[FieldView[datetime | None]] = optional_instant_view("expires_at_ms")
    created_at: ClassVar[FieldView[datetime]] = instant_view("created_at_ms")
    updated_at: ClassVar[FieldView[datetime]] = instant_view("updated_at_ms")

    @property
    def settlement(self) -> int:
        """1 if a payer's signature settled a quote by it, else 0: columns hold no booleans."""
        return int(self.settles_quote is not None)
