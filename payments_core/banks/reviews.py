"""A bank's decisions on an account: whether it may use a service, whether it can be paid."""

from __future__ import annotations

from typing import Literal

import attrs

BankCapability = Literal["us_bank_payout", "us_bank_funding"]
BankReviewStatus = Literal["pending", "active", "rejected"]


@attrs.frozen(kw_only=True)
class BankReview:
    """The bank's decision on a request.

    `hosted_url` is where the user supplies the information that the bank still requires. `reason`
    is the bank's sentence about a rejection.
    """

    key: str
    reference: str
    status: BankReviewStatus
    hosted_url: str | None = attrs.field(default=None, repr=False)
    reason: str | None = None
