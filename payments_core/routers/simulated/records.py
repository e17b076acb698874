"""The books of the simulated router, as rows of the `simulated` partition (contract §11)."""

from __future__ import annotations

from typing import ClassVar

import attrs

from payments_core.clock import Instant
from payments_core.money import Atomic, atomic
from payments_core.storage.records import Collection, Record


@attrs.frozen(kw_only=True, slots=False)
class SimulatedRoute(Record):
    """An order that the router has taken; the id is its key. Assets are `chainId/symbol`."""

    collection: ClassVar[Collection] = Collection("simulated_routes")

    source: str
    destination: str
    amount: Atomic = attrs.field(converter=atomic)
    expected: Atomic = attrs.field(converter=atomic)
    minimum: Atomic = attrs.field(converter=atomic)
    recipient: str
    return_to: str
    address: str


@attrs.frozen(kw_only=True, slots=False)
class SimulatedExchange(Record):
    """The payment of one transaction for an order; the id is `key:hash`.

    The router pays at `due_at`: to the recipient, or back if it `returns`.
    """

    collection: ClassVar[Collection] = Collection("simulated_exchanges")

    amount: Atomic = attrs.field(converter=atomic)
    due_at: Instant
    returns: bool = False
