"""A quote as it is stored (interface "v1 quote flow", contract §10)."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

import attrs

from payments_core.clock import SECOND, Instant
from payments_core.field_views import FieldView, instant_view
from payments_core.money import Atomic, atomic
from payments_core.networks import Asset, pin_token
from payments_core.storage.records import Collection, Document, Index, Lookup, Record

QUOTE_LIFETIME_S = 15 * 60
QUOTE_LIFETIME_MS = QUOTE_LIFETIME_S * SECOND


def _pin_tokens(document: Document) -> Document:
    """Assets were found by their symbols in a table of the code."""
    found = dict(document)
    for side in ("source", "destination"):
        named = {"chain_id": found[f"{side}_chain_id"], "asset_symbol": found[f"{side}_symbol"]}
        token = pin_token(named)
        found[f"{side}_token_address"] = token["token_address"]
        found[f"{side}_decimals"] = token["decimals"]
    return found


@attrs.frozen(kw_only=True, slots=False)
class Quote(Record):
    """A quote; it never changes. The Payment that carries it out has the state.

    The payer sends `input_atomic` to `deposit_address`, the Payment's escrow, before `expires_at`,
    and the recipient gets about `output_atomic`, at least `minimum_atomic`; the difference between
    `input_atomic` and `output_atomic` at `rate` is `fee_atomic`, in the output's asset. `rate` is
    decimal text, as are the values in US dollars, which are None for assets without a price. The
    payer is an account of the service (`payer_account_id`), or a wallet (`payer_address`).
    """

    collection: ClassVar[Collection] = Collection(
        "quotes",
        columns={"payment_id": str, "deposit_address": str, "created_at": int},
        indexes=(
            Index("by_deposit_address", key=("deposit_address",)),
            Index("by_created", order=("created_at",), descending=True),
        ),
        schema=3,
        upgrades={2: _pin_tokens},
    )

    payment_id: str
    deposit_address: str
    payer_account_id: str | None = None
    payer_address: str | None = None
    source_chain_id: int
    source_symbol: str
    source_token_address: str = attrs.field(repr=False)
    source_decimals: int = attrs.field(repr=False)
    input_atomic: Atomic = attrs.field(converter=atomic)
    input_usd: str | None = None
    destination_chain_id: int
    destination_symbol: str
    destination_token_address: str = attrs.field(repr=False)
    destination_decimals: int = attrs.field(repr=False)
    output_atomic: Atomic = attrs.field(converter=atomic)
    output_usd: str | None = None
    minimum_atomic: Atomic = attrs.field(converter=atomic)
    fee_atomic: Atomic = attrs.field(converter=atomic)
    rate: str
    time_s: int
    expires_at_ms: Instant
    created_at_ms: Instant

    expires_at: ClassVar[FieldView[datetime]] = instant_view("expires_at_ms")
    created_at: ClassVar[FieldView[datetime]] = instant_view("created_at_ms")

    @property
    def source(self) -> Asset:
        """The asset that the payer sends."""
        return Asset(
            self.source_chain_id,
            self.source_symbol,
            self.source_token_address,
            self.source_decimals,
        )

    @property
    def destination(self) -> Asset:
        """The asset that the recipient gets."""
        return Asset(
            self.destination_chain_id,
            self.destination_symbol,
            self.destination_token_address,
            self.destination_decimals,
        )


@attrs.frozen(kw_only=True, slots=False)
class RouteDelivery(Record):
    """A transfer of a router that counts as the delivery of a Payment, once in a deployment.

    The id is `chainId:hash:position`; `transfer` is the same, for a look-up in any partition. A
    `DeliveryClaim` came before it, except where an earlier release counted it.
    """

    collection: ClassVar[Collection] = Collection(
        "route_deliveries",
        columns={"transfer": str},
        lookups=(Lookup("by_transfer", ("transfer",)),),
        schema=2,
    )

    transfer: str
    payment_id: str
    created_at_ms: Instant

    created_at: ClassVar[FieldView[datetime]] = instant_view("created_at_ms")


@attrs.frozen(kw_only=True, slots=False)
class DeliveryClaim(Record):
    """A directory row: which Payment, of any environment, may count a router's transfer.

    The id is `chainId:hash:position`, and so it is unique in a deployment. It is stored before the
    delivery and kept permanently: a Payment finds its own claim again after a crash.
    """

    collection: ClassVar[Collection] = Collection("delivery_claims", schema=2)

    payment_id: str
    created_at_ms: Instant

    created_at: ClassVar[FieldView[datetime]] = instant_view("created_at_ms")
