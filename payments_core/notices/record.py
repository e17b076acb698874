"""A provider's notice as it is stored, in the directory."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar, Literal

import attrs

from payments_core.clock import Instant
from payments_core.field_views import FieldView, instant_view
from payments_core.storage.records import Collection, Index, Record

NoticeStatus = Literal["received", "routed", "unknown"]
ProviderKind = Literal["kyc", "bank", "screening", "onramp"]


@attrs.frozen(kw_only=True, slots=False)
class StoredNotice(Record):
    """One notice of a provider; its id follows from the provider's own id of it.

    `received` waits until its case is found, `routed` had the case looked at, and `unknown` named
    a case that was not found in time: it is kept until an operator has it looked for again.
    """

    collection: ClassVar[Collection] = Collection(
        "provider_notices",
        columns={"mode": str, "status": str, "received_at": int},
        indexes=(Index("by_status", key=("mode", "status"), order=("received_at",)),),
    )

    mode: str
    kind: ProviderKind
    provider: str
    notice_id: str
    reference: str
    status: NoticeStatus = "received"
    received_at_ms: Instant
    updated_at_ms: Instant

    received_at: ClassVar[FieldView[datetime]] = instant_view("received_at_ms")
    updated_at: ClassVar[FieldView[datetime]] = instant_view("updated_at_ms")
