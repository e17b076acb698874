"""The router's books, as rows of the directory (docs/decisions/0025-cctp-router.md).

A route's terms are in no other place: they cannot be read from its address. All else could be
found on the chains again; a row only says from where to look.
"""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar, Literal

import attrs

from payments_core.clock import Instant
from payments_core.field_views import FieldView, instant_view
from payments_core.money import ZERO, Atomic, atomic
from payments_core.routers.cctp.forwarders import RouteTerms
from payments_core.storage.records import Collection, Record

TransferState = Literal[
    "burning", "burned", "attested", "minted", "delivered", "returning", "returned"
]


@attrs.frozen(kw_only=True, slots=False)
class CctpRoute(Record):
    """An order that the router has taken; the id is its key.

    `order` are the order's own words, which the same key must repeat. `expected_atomic` and
    `minimum_atomic` are of a send. Of an offer, `held_atomic` is what its address had when it was
    last looked at, `payment_hash` the newest payment that was seen, and `return_hash` the newest
    return with its amount; `searched_from` is the block from which its transfers are searched.
    """

    collection: ClassVar[Collection] = Collection("cctp_routes")

    order: str
    terms: RouteTerms
    source_chain_id: int
    destination_chain_id: int
    destination_token: str
    address: str
    created_at_ms: Instant
    expires_at_ms: Instant
    searched_from: int = 0
    held_atomic: Atomic = attrs.field(default=ZERO, converter=atomic)
    payment_hash: str | None = None
    return_hash: str | None = None
    returned_atomic: Atomic = attrs.field(default=ZERO, converter=atomic)
    is_returned: bool = False

    created_at: ClassVar[FieldView[datetime]] = instant_view("created_at_ms")
    expires_at: ClassVar[FieldView[datetime]] = instant_view("expires_at_ms")

    @property
    def is_offer(self) -> bool:
        """Whether a payer pays it; else we do, for a send."""
        return self.terms.amount > 0


@attrs.frozen(kw_only=True, slots=False)
class CctpTransfer(Record):
    """What becomes of one payment to a route; the id is `key:payment`.

    `burning` until the source chain says that the payment is spent, `burned` until the message is
    attested, `attested` until the destination chain says that its nonce is used, `minted` until
    that is final; or `returning` until the return is final. Hashes are of the transactions that did
    it, ours or anybody's. `failing_since_ms` is since when nodes say that a burn would fail.
    """

    collection: ClassVar[Collection] = Collection("cctp_transfers")

    route_id: str
    payment: str
    amount_atomic: Atomic = attrs.field(converter=atomic)
    state: TransferState = "burning"
    source_from: int
    destination_from: int
    failing_since_ms: Instant | None = None
    burn_hash: str | None = None
    message: str | None = None
    attestation: str | None = None
    mint_hash: str | None = None
    return_hash: str | None = None
    created_at_ms: Instant

    created_at: ClassVar[FieldView[datetime]] = instant_view("created_at_ms")


@attrs.frozen(kw_only=True)
class LiveCall:
    """A call that was signed, and is in no block yet. `subject` says what for."""

    nonce: int
    subject: str
    hash: str
    raw: str = attrs.field(repr=False)
    signed_at_ms: Instant


@attrs.frozen(kw_only=True, slots=False)
class CctpLine(Record):
    """The live calls of the router's key on one chain; the id is `chainId:sender`."""

    collection: ClassVar[Collection] = Collection("cctp_lines")

    calls: tuple[LiveCall, ...] = ()
