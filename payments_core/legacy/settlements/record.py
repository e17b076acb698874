"""A quote that its payer settled by a signature, as it is stored (contract §10)."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

import attrs

from payments_core.clock import Instant
from payments_core.field_views import FieldView, instant_view
from payments_core.storage.records import Collection, Record, Unique


@attrs.frozen(kw_only=True, slots=False)
class QuoteSettlement(Record):
    """A payer's signature, once per quote; each nonce of an account works once.

    The id is that of the quote. `nonce` and `deadline` are decimal text, of up to 256 bits; the
    deadline is in Unix seconds. `wallet_id` and `signer` are of the signing wallet, and
    `operation_id` of the funding operation that the signature authorized.
    """

    collection: ClassVar[Collection] = Collection(
        "quote_settlements",
        columns={"account_id": str, "nonce": str},
        uniques=(Unique("nonce", ("account_id", "nonce")),),
        schema=2,
    )

    account_id: str
    nonce: str
    deadline: str
    wallet_id: str
    signer: str
    signature: str = attrs.field(repr=False)
    payment_id: str
    operation_id: str
    created_at_ms: Instant

    created_at: ClassVar[FieldView[datetime]] = instant_view("created_at_ms")
