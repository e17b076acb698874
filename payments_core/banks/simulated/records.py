"""The books of the simulated bank, as rows of the `simulated` partition (contract §11)."""

from __future__ import annotations

from typing import ClassVar

import attrs

from payments_core.banks.payouts import BankPayoutStatus
from payments_core.banks.rails import Rail
from payments_core.banks.return_codes import HolderType
from payments_core.clock import Instant
from payments_core.storage.records import Collection, Index, Record


@attrs.frozen(kw_only=True, slots=False)
class SimulatedReview(Record):
    """A request for a capability, or a recipient's account; the id is `kind:key`.

    It is pending until `decides_at`, then active, or rejected if there is a `rejection`.
    """

    collection: ClassVar[Collection] = Collection("simulated_bank_reviews")

    request_digest: str
    decides_at: Instant
    rejection: str | None = None


@attrs.frozen(kw_only=True, slots=False)
class SimulatedPayout(Record):
    """A payout in the bank's books; the id is its key.

    Its state follows from the clock: it settles at `settles_at` and comes back at `returns_at`.
    A payout returned before its settlement never settles: `settles` is false.
    `order_digest` is keyed, so that no account number can be guessed from it.
    """

    collection: ClassVar[Collection] = Collection("simulated_payouts")

    order_digest: str
    rail: Rail
    amount_cents: int
    holder_type: HolderType
    submitted_at: Instant
    settles_on: str
    settles_at: Instant
    settles: bool = True
    returns_at: Instant | None = None
    return_code: str | None = None


@attrs.frozen(kw_only=True, slots=False)
class SimulatedBankNotice(Record):
    """A notice that the bank gives from `due_at` on, until it is acknowledged."""

    collection: ClassVar[Collection] = Collection(
        "simulated_bank_notices",
        columns={"due_at": int},
        indexes=(Index("by_due", order=("due_at",)),),
    )

    payout_key: str
    status: BankPayoutStatus
    occurred_at: Instant
    due_at: Instant
