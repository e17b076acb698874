"""An account's capability as it is stored, from its first activation on (contract §7)."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar, Literal

import attrs

from payments_core.banks.reviews import BankCapability
from payments_core.clock import Instant
from payments_core.field_views import FieldView, instant_view
from payments_core.storage.records import Collection, Index, Lookup, Record, Unique

CapabilityStatus = Literal[
    "inactive", "action_required", "pending", "active", "rejected", "suspended"
]

CAPABILITIES: tuple[BankCapability, ...] = ("us_bank_payout", "us_bank_funding")

PRODUCT_OF_CAPABILITY: dict[BankCapability, str] = {
    "us_bank_payout": "bank_payouts",
    "us_bank_funding": "bank_funding",
}


@attrs.frozen(kw_only=True, slots=False)
class CapabilityActivation(Record):
    """The state of a capability of an account. `attempt` counts the requests to the bank, each of
    which has its own key: a rejected capability can be requested again.

    `hosted_url` is where the user supplies what the bank requires; a holder of the URL acts as the
    user. `reason` is the bank's sentence about a rejection.
    """

    collection: ClassVar[Collection] = Collection(
        "capability_activations",
        columns={"account_id": str, "capability": str, "created_at": int, "request_key": str},
        indexes=(Index("by_account", key=("account_id",), order=("created_at",)),),
        uniques=(Unique("capability", ("account_id", "capability")),),
        lookups=(Lookup("by_request_key", ("request_key",)),),
        schema=2,
    )

    account_id: str
    capability: BankCapability
    status: CapabilityStatus = "inactive"
    attempt: int = 0
    return_url: str | None = attrs.field(default=None, repr=False)
    hosted_url: str | None = attrs.field(default=None, repr=False)
    reason: str | None = None
    api_version: str
    created_at_ms: Instant
    updated_at_ms: Instant

    created_at: ClassVar[FieldView[datetime]] = instant_view("created_at_ms")
    updated_at: ClassVar[FieldView[datetime]] = instant_view("updated_at_ms")

    @property
    def request_key(self) -> str:
        """The key of the present request to the bank."""
        return f"{self.id}/{self.attempt}"
