"""What is kept of a Payment that was purged."""

from __future__ import annotations

from typing import ClassVar

import attrs

from payments_core.clock import Instant
from payments_core.storage.records import Collection, Lookup, Record


@attrs.frozen(kw_only=True, slots=False)
class PurgedPayment(Record):
    """The remainder, under its id, of a Payment that expired with nothing received and was purged.

    It records the escrow permanently: a transfer that arrives there is noticed, and the address is
    never mistaken for a stranger's.
    """

    collection: ClassVar[Collection] = Collection(
        "purged_payments",
        columns={"escrow_address": str},
        lookups=(Lookup("by_escrow", ("escrow_address",)),),
    )

    chain_id: int
    escrow_address: str
    expired_at: Instant
    purged_at: Instant
