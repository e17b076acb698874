"""A dispute as it is stored (interface "Session (dispute)")."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar, Literal

import attrs

from payments_core.clock import Instant
from payments_core.field_views import FieldView, instant_view, optional_instant_view
from payments_core.storage.records import Collection, Record

DisputeStatus = Literal["flagged", "resolved"]
Resolution = Literal["won", "lost", "withdrawn"]


@attrs.frozen(kw_only=True, slots=False)
class Dispute(Record):
    """The one dispute of a session, under the session's id, so there is never a second.

    `resolution`, `note` and `resolved_at` are set when it is resolved; the note is optional.
    `nonce` identifies the call that flagged it, if the answer to a COMMIT was lost.
    """

    collection: ClassVar[Collection] = Collection("disputes", columns={"payment_id": str}, schema=2)

    payment_id: str
    nonce: str
    status: DisputeStatus
    reason: str
    description: str | None = None
    resolution: Resolution | None = None
    note: str | None = None
    created_at_ms: Instant
    resolved_at_ms: Instant | None = None

    created_at: ClassVar[FieldView[datetime]] = instant_view("created_at_ms")
    resolved_at: ClassVar[FieldView[datetime | None]] = optional_instant_view("resolved_at_ms")
