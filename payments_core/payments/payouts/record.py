"""A payout as it is stored: a part of its Payment (contract §7)."""

from __future__ import annotations

import attrs

from payments_core.banks.rails import Rail
from payments_core.clock import Instant

OFFRAMP_OWNER = "offramp"
"""The off-ramp address of an environment is the escrow of this owner; no Payment has such an id."""


@attrs.frozen(kw_only=True)
class Payout:
    """A payout ordered from the bank under `key`, and its result.

    A retried Payment has another payout with another key; `attempt` counts them.
    `funded_at` is when its funds were finally at the off-ramp address. `reference`, `settles_on`
    (an ISO date) and the times from `submitted_at` on are the bank's. `failure` is a word for
    programs.
    """

    key: str
    attempt: int = 1
    status: str
    bank_account_id: str
    rail: Rail
    amount_cents: int
    statement_text: str | None = attrs.field(default=None, repr=False)
    funded_at: Instant | None = None
    reference: str | None = None
    submitted_at: Instant | None = None
    settles_on: str | None = None
    settled_at: Instant | None = None
    returned_at: Instant | None = None
    return_code: str | None = None
    failure: str | None = None


def payout_key(partition: str, payment_id: str, attempt: int) -> str:
    """The bank's key of a payout: it names the Payment, so that a notice finds it."""
    return f"{partition}/{payment_id}/{attempt}"


def parse_payout_key(key: str) -> tuple[str, str] | None:
    """The partition and the Payment's id of a key; None for a key that is not ours."""
    partition, _, rest = key.partition("/")
    payment_id, _, attempt = rest.partition("/")
    return (partition, payment_id) if partition and payment_id and attempt else None
