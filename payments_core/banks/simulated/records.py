"""The books of the simulated bank, as rows of the `simulated` partition (contract §11)."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

import attrs

from payments_core.banks.payouts import BankPayoutStatus
from payments_core.banks.rails import Rail
from payments_core.banks.return_codes import HolderType
from payments_core.clock import Instant
from payments_core.field_views import FieldView, instant_view, optional_instant_view
from payments_core.storage.records import Collection, Index, Record


@attrs.frozen(kw_only=True, slots=False)
class SimulatedReview(Record):
    """A request for a capability, or a recipient's account; the id is `kind:key`.

    It is pending until `decides_at`, then active, or rejected if there is a `rejection`.
    """

    collection: ClassVar[Collection] = Collection("simulated_bank_reviews", schema=2)

    request_digest: str
    decides_at_ms: Instant
    rejection: str | None = None

    decides_at: ClassVar[FieldView[datetime]] = instant_view("decides_at_ms")


@attrs.frozen(kw_only=True, slots=False)
class SimulatedPayout(Record):
    """A payout in the bank's books; the id is its key.

    Its state follows from the clock: it settles at `settles_at` and comes back at `returns_at`.
    A payout returned before its settlement never settles: `settles` is false.
    `order_digest` is keyed, so that no account number can be guessed from it.
    """

    collection: ClassVar[Collection] = Collection("simulated_payouts", schema=2)

    order_digest: str
    rail: Rail
    amount_cents: int
    holder_type: HolderType
    submitted_at_ms: Instant
    settles_on: str
    settles_at_ms: Instant
    settles: bool = True
    returns_at_ms: Instant | None = None
    return_code: str | None = None

    submitted_at: ClassVar[FieldView[datetime]] = instant_view("submitted_at_ms")
    settles_at: ClassVar[FieldView[datetime]] = instant_view("settles_at_ms")
    returns_at: ClassVar[FieldView[datetime | None]] = optional_instant_view("returns_at_ms")


@attrs.frozen(kw_only=True, slots=False)
class SimulatedBankNotice(Record):
    """A notice that the bank gives from `due_at` on, until it is acknowledged."""

    collection: ClassVar[Collection] = Collection(
        "simulated_bank_notices",
        columns={"due_at": int},
        indexes=(Index("by_due", order=("due_at",)),),
        schema=2,
    )

    payout_key: str
    status: BankPayoutStatus
    occurred_at_ms: Instant
    due_at_ms: Instant

    occurred_at: ClassVar[FieldView[datetime]] = instant_view("occurred_at_ms")
    due_at: ClassVar[FieldView[datetime]] = instant_view("due_at_ms")
