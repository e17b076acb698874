"""The books of the simulated on-ramp, as rows of the `simulated` partition (contract §11)."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar, Literal

import attrs

from payments_core.clock import Instant
from payments_core.field_views import FieldView, instant_view, optional_instant_view
from payments_core.money import Atomic, atomic
from payments_core.storage.records import Collection, Record

Outcome = Literal["pay", "pay_short", "pay_twice", "fail", "return"]
"""What the buyer, or the provider, does: pay the price, half of it, or two times; not pay; pay, and
get the money back."""


@attrs.frozen(kw_only=True, slots=False)
class SimulatedOrder(Record):
    """An order; the id is its reference. The asset is `chainId/symbol`.

    After an `outcome` was ordered, the escrow is paid at `due_at`.
    """

    collection: ClassVar[Collection] = Collection("simulated_orders")

    key: str
    asset: str
    amount_atomic: Atomic = attrs.field(converter=atomic)
    recipient: str
    expires_at_ms: Instant
    outcome: Outcome | None = None
    due_at_ms: Instant | None = None

    expires_at: ClassVar[FieldView[datetime]] = instant_view("expires_at_ms")
    due_at: ClassVar[FieldView[datetime | None]] = optional_instant_view("due_at_ms")
