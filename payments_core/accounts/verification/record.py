"""A verification as it is stored (contract §5)."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

import attrs

from payments_core.accounts.record import KycStatus
from payments_core.clock import Instant
from payments_core.field_views import FieldView, instant_view
from payments_core.storage.records import Collection, Index, Lookup, Record


@attrs.frozen(kw_only=True, slots=False)
class Verification(Record):
    """One attempt to verify the identity of an account's user, with the provider that hosts it.

    `not_started` is a reservation: the provider has not answered yet, and it is not shown.
    `reference` is the provider's name for it. `hosted_url` is the URL for the user; a holder of
    it may act there as the user, so it is deleted after the decision. `api_version` is that of the
    request, for the events of the decision; rows of earlier releases have none.

    >>> [verification.status for verification in shop.verifications.list(bob.id).records]
    ['approved']
    """

    collection: ClassVar[Collection] = Collection(
        "verifications",
        columns={"account_id": str, "status": str, "created_at": int, "reference": str},
        indexes=(
            Index("by_account", key=("account_id",), order=("created_at",), descending=True),
            Index("by_status", key=("status",), order=("created_at",)),
        ),
        lookups=(Lookup("by_reference", ("reference",)),),
        schema=3,
    )

    account_id: str
    status: KycStatus = "not_started"
    reference: str | None = None
    hosted_url: str | None = attrs.field(default=None, repr=False)
    api_version: str | None = None
    created_at_ms: Instant
    updated_at_ms: Instant

    created_at: ClassVar[FieldView[datetime]] = instant_view("created_at_ms")
    updated_at: ClassVar[FieldView[datetime]] = instant_view("updated_at_ms")
