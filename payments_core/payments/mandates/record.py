"""Mandates as they are stored (contract §5)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, ClassVar, Literal

import attrs

from payments_core.clock import Instant
from payments_core.field_views import FieldView, amount_view, instant_view, optional_instant_view
from payments_core.money import ZERO, Atomic, atomic
from payments_core.networks import Asset, pin_token
from payments_core.storage.records import Collection, Index, Record

Period = Literal["day", "week", "month"]
MandateStatus = Literal["active", "revoked"]


@attrs.frozen(kw_only=True, slots=False)
class Mandate(Record):
    """A standing approval to collect from a vault, up to an amount in each period.

    `drawn_atomic` is the amount drawn in the period that began at `period_start`; -1 is before the
    first draw. The status `expired` is never stored: it follows from the clock.
    """

    collection: ClassVar[Collection] = Collection(
        "mandates",
        columns={"account_id": str, "created_at": int},
        indexes=(Index("by_account", key=("account_id",), order=("created_at",), descending=True),),
        schema=3,
        upgrades={2: pin_token},
    )

    account_id: str
    vault_id: str
    chain_id: int
    asset_symbol: str
    token_address: str = attrs.field(repr=False)
    decimals: int = attrs.field(repr=False)
    amount_per_period_atomic: Atomic = attrs.field(converter=atomic)
    period: Period
    status: MandateStatus = "active"
    period_start_ms: Instant = -1
    drawn_atomic: Atomic = attrs.field(default=ZERO, converter=atomic)
    expires_at_ms: Instant | None = None
    reference: str | None = None
    metadata: Mapping[str, Any] | None = None
    created_at_ms: Instant
    updated_at_ms: Instant
    revoked_at_ms: Instant | None = None

    period_start: ClassVar[FieldView[datetime]] = instant_view("period_start_ms")
    expires_at: ClassVar[FieldView[datetime | None]] = optional_instant_view("expires_at_ms")
    amount_per_period: ClassVar[FieldView[str]] = amount_view("amount_per_period_atomic")
    created_at: ClassVar[FieldView[datetime]] = instant_view("created_at_ms")
    updated_at: ClassVar[FieldView[datetime]] = instant_view("updated_at_ms")
    revoked_at: ClassVar[FieldView[datetime | None]] = optional_instant_view("revoked_at_ms")

    @property
    def asset(self) -> Asset:
        """The asset that is collected."""
        return Asset(self.chain_id, self.asset_symbol, self.token_address, self.decimals)
