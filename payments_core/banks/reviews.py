"""What a bank decides of an account: whether it may use a service, whether it can be paid."""

from __future__ import annotations

from typing import Literal

import attrs

BankCapability = Literal["us_bank_payout", "us_bank_funding"]
BankReviewStatus = Literal["pending", "active", "rejected"]


@attrs.frozen(kw_only=True)
class BankReview:
    """What the bank has decided of a request.

    `hosted_url` is where the user supplies what the bank still asks for. `reason` is the bank's
    sentence about a rejection.
    """

    key: str
    reference: str
    status: BankReviewStatus
    hosted_url: str | None = attrs.field(default=None, repr=False)
    reason: str | None = None
