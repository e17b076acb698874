"""An offer of a provider as it is stored (contract §6 "Option", §14)."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar, Literal

import attrs

from payments_core.brief_repr import brief_repr
from payments_core.clock import Instant
from payments_core.field_views import FieldView, instant_view
from payments_core.money import Atomic, atomic
from payments_core.networks import Asset
from payments_core.payment_settings.record import PaymentMethod
from payments_core.payments.options.record import PaymentOption
from payments_core.storage.records import Collection, Lookup, Record

OfferStatus = Literal["asked", "refused", "waiting", "paid", "delivered", "returned", "failed"]
"""`asked` until the provider answers, or `refused`; from `waiting` on it is what the provider says.
It is no state machine: a router's address may be paid again after anything."""


@attrs.frozen(kw_only=True)
class OfferTerms:
    """What a provider promises until `expires_at_ms`.

    A router's payer sends `amount_atomic` of the source asset to `address`. An on-ramp's payer pays
    `price` in `currency` at `url`.
    """

    __repr__ = brief_repr

    expires_at_ms: Instant
    address: str | None = None
    amount_atomic: Atomic | None = None
    url: str | None = attrs.field(default=None, repr=False)
    price: str | None = None
    currency: str | None = None

    expires_at: ClassVar[FieldView[datetime]] = instant_view("expires_at_ms")


@attrs.frozen(kw_only=True)
class OfferProgress:
    """The provider's newest report: transactions as it names them, and the amount in the last."""

    __repr__ = brief_repr

    status: OfferStatus
    payment_hash: str | None = None
    transaction_hash: str | None = None
    amount_atomic: Atomic | None = None


@attrs.frozen(kw_only=True, slots=False)
class Offer(Record):
    """One quote for one option; the id is the provider's key, `<option id>/<number>`.

    `required_atomic` of the Payment's asset must reach the escrow. `source` is the asset with which
    a router is paid, and `refund_address` is the payer's on its chain. `terms` are None until the
    provider has answered; `reference` is an on-ramp's name of its order. A job follows the offer
    until `followed_until`, also after its end: what is paid too late is delivered or returned.

    >>> offered = visitor.public_options.create(payment.id, method="hosted_onramp")
    >>> offered.offer.status, offered.offer.terms.currency
    ('waiting', 'USD')
    """

    collection: ClassVar[Collection] = Collection(
        "offers",
        columns={"reference": str},
        lookups=(Lookup("by_reference", ("reference",)),),
    )

    payment_id: str
    option_id: str
    method: PaymentMethod
    status: OfferStatus = "asked"
    required_atomic: Atomic = attrs.field(converter=atomic)
    source: Asset | None = None
    refund_address: str | None = None
    return_url: str | None = attrs.field(default=None, repr=False)
    terms: OfferTerms | None = None
    reference: str | None = attrs.field(default=None, repr=False)
    payment_hash: str | None = None
    transaction_hash: str | None = None
    progress_atomic: Atomic | None = None
    changed_at_ms: Instant
    followed_until_ms: Instant
    created_at_ms: Instant
    updated_at_ms: Instant

    changed_at: ClassVar[FieldView[datetime]] = instant_view("changed_at_ms")
    followed_until: ClassVar[FieldView[datetime]] = instant_view("followed_until_ms")
    created_at: ClassVar[FieldView[datetime]] = instant_view("created_at_ms")
    updated_at: ClassVar[FieldView[datetime]] = instant_view("updated_at_ms")

    @property
    def is_answered(self) -> bool:
        """Whether the provider has made the offer."""
        return self.terms is not None

    def is_valid(self, now: Instant) -> bool:
        """Whether its terms hold for a payment that comes now."""
        if self.status != "waiting" or self.terms is None:
            return False
        return now < self.terms.expires_at_ms

    @property
    def may_have_paid(self) -> bool:
        """Whether funds at the escrow may be the provider's: it delivered, or may still do it."""
        return self.status in ("waiting", "paid", "delivered")


def list_offer_ids(option: PaymentOption) -> tuple[str, ...]:
    """The ids of all offers that an option's provider was asked for."""
    return tuple(offer_id(option.id, number) for number in range(1, option.offer_count + 1))


def offer_id(option_id: str, number: int) -> str:
    """The id of an option's offer, and the provider's key of it."""
    return f"{option_id}/{number}"
