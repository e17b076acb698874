"""A payout as a bank reports it."""

from __future__ import annotations

from datetime import date, datetime
from typing import ClassVar, Literal

import attrs

from payments_core.banks.rails import Rail
from payments_core.clock import Instant
from payments_core.field_views import FieldView, instant_view, optional_instant_view

BankPayoutStatus = Literal["submitted", "settled", "returned"]


@attrs.frozen(kw_only=True)
class BankPayout:
    """A payout as the bank reports it.

    `settles_on` is the settlement date of the rail: expected, until it has settled. A payout that
    was returned before it settled has no `settled_at`.
    """

    key: str
    reference: str
    status: BankPayoutStatus
    rail: Rail
    amount_cents: int
    submitted_at_ms: Instant
    settles_on: date
    settled_at_ms: Instant | None = None
    returned_at_ms: Instant | None = None
    return_code: str | None = None

    submitted_at: ClassVar[FieldView[datetime]] = instant_view("submitted_at_ms")
    settled_at: ClassVar[FieldView[datetime | None]] = optional_instant_view("settled_at_ms")
    returned_at: ClassVar[FieldView[datetime | None]] = optional_instant_view("returned_at_ms")
