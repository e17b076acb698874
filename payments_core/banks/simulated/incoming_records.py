"""The simulated bank's books of incoming transfers, as rows of the `simulated` partition."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar, Literal

import attrs

from payments_core.banks.incoming import IncomingRail
from payments_core.clock import Instant
from payments_core.field_views import FieldView, instant_view, optional_instant_view
from payments_core.storage.records import Collection, Index, Record


@attrs.frozen(kw_only=True, slots=False)
class SimulatedVirtualAccount(Record):
    """A virtual account; the id is its key. Its number follows from the key and is not stored."""

    collection: ClassVar[Collection] = Collection("simulated_virtual_accounts")

    request_digest: str


@attrs.frozen(kw_only=True, slots=False)
class SimulatedIncoming(Record):
    """An incoming transfer. Its state follows from the clock.

    It settles at `settles_at`, is held until `held_until` if that is set, and ends as `end` at
    `ends_at`, unless it was delivered: then `delivery_key` is the key of the order.
    """

    collection: ClassVar[Collection] = Collection("simulated_incoming", schema=2)

    account_key: str | None
    rail: IncomingRail
    amount_cents: int
    sender_name: str = attrs.field(repr=False)
    reference: str | None = None
    created_at_ms: Instant
    settles_at_ms: Instant
    held_until_ms: Instant | None = None
    end: Literal["returned", "cancelled"] | None = None
    ends_at_ms: Instant | None = None
    end_reason: str | None = None
    delivery_key: str | None = None
    delivery_digest: str | None = None

    created_at: ClassVar[FieldView[datetime]] = instant_view("created_at_ms")
    settles_at: ClassVar[FieldView[datetime]] = instant_view("settles_at_ms")
    held_until: ClassVar[FieldView[datetime | None]] = optional_instant_view("held_until_ms")
    ends_at: ClassVar[FieldView[datetime | None]] = optional_instant_view("ends_at_ms")


@attrs.frozen(kw_only=True, slots=False)
class SimulatedIncomingNotice(Record):
    """A notice that the bank gives from `due_at` on, until it is acknowledged."""

    collection: ClassVar[Collection] = Collection(
        "simulated_incoming_notices",
        columns={"due_at": int},
        indexes=(Index("newest", order=("due_at",), descending=True),),
        schema=2,
    )

    incoming_id: str
    account_key: str | None
    occurred_at_ms: Instant
    due_at_ms: Instant

    occurred_at: ClassVar[FieldView[datetime]] = instant_view("occurred_at_ms")
    due_at: ClassVar[FieldView[datetime]] = instant_view("due_at_ms")
