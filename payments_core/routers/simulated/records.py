"""The books of the simulated router, as rows of the `simulated` partition (contract §11)."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

import attrs

from payments_core.clock import Instant
from payments_core.field_views import FieldView, instant_view
from payments_core.money import Atomic, atomic
from payments_core.storage.records import Collection, Record


@attrs.frozen(kw_only=True, slots=False)
class SimulatedRoute(Record):
    """An order that the router has taken; the id is its key. Assets are `chainId/symbol`."""

    collection: ClassVar[Collection] = Collection("simulated_routes", schema=2)

    source: str
    destination: str
    amount_atomic: Atomic = attrs.field(converter=atomic)
    expected_atomic: Atomic = attrs.field(converter=atomic)
    minimum_atomic: Atomic = attrs.field(converter=atomic)
    recipient: str
    return_to: str
    address: str


@attrs.frozen(kw_only=True, slots=False)
class SimulatedExchange(Record):
    """The payment of one transaction for an order; the id is `key:hash`.

    The router pays at `due_at`: to the recipient, or back if it `returns`.
    """

    collection: ClassVar[Collection] = Collection("simulated_exchanges", schema=2)

    amount_atomic: Atomic = attrs.field(converter=atomic)
    due_at_ms: Instant
    returns: bool = False

    due_at: ClassVar[FieldView[datetime]] = instant_view("due_at_ms")


@attrs.frozen(kw_only=True)
class SimulatedOfferPayment:
    """What one transaction paid to an offer's address. At `due_at` it is delivered, or returned."""

    hash: str
    amount_atomic: Atomic = attrs.field(converter=atomic)
    due_at_ms: Instant
    returns: bool

    due_at: ClassVar[FieldView[datetime]] = instant_view("due_at_ms")


@attrs.frozen(kw_only=True, slots=False)
class SimulatedOffer(Record):
    """An offer to a payer; the id is its key. Assets are `chainId/symbol`.

    The source chain was looked through up to `seen_height`, and `payments` were found.
    """

    collection: ClassVar[Collection] = Collection("simulated_offers")

    source: str
    destination: str
    amount_atomic: Atomic = attrs.field(converter=atomic)
    price_atomic: Atomic = attrs.field(converter=atomic)
    recipient: str
    refund_address: str
    address: str
    expires_at_ms: Instant
    seen_height: int
    payments: tuple[SimulatedOfferPayment, ...] = ()

    expires_at: ClassVar[FieldView[datetime]] = instant_view("expires_at_ms")
