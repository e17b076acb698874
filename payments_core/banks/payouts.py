"""A payout as a bank reports it."""

from __future__ import annotations

from datetime import date
from typing import Literal

import attrs

from payments_core.banks.rails import Rail
from payments_core.clock import Instant

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
    submitted_at: Instant
    settles_on: date
    settled_at: Instant | None = None
    returned_at: Instant | None = None
    return_code: str | None = None
