"""A payment option as it is stored (interface "Payment option", contract §6 "Option")."""

from __future__ import annotations

from datetime import datetime
from typing import ClassVar

import attrs

from payments_core.clock import Instant
from payments_core.field_views import FieldView, instant_view, optional_instant_view
from payments_core.money import ZERO, Atomic, atomic
from payments_core.networks import Asset
from payments_core.payment_settings.record import PaymentMethod
from payments_core.payments.options.methods import METHODS
from payments_core.storage.records import Collection, Document, Record


@attrs.frozen(kw_only=True)
class Submission:
    """A payer's claim that a transaction pays: only a hint where to look."""

    chain_id: int
    transaction_hash: str
    submitted_at_ms: Instant

    submitted_at: ClassVar[FieldView[datetime]] = instant_view("submitted_at_ms")


def _name_vault(document: Document) -> Document:
    return {**document, "method": "vault"}


def _from_direct_option(document: Document) -> Document:
    return {**document, "method": "direct", "schema": 2}


@attrs.frozen(kw_only=True, slots=False)
class PaymentOption(Record):
    """One offer to fund a Payment, by one of METHODS.

    `required_atomic` is the amount that remained of the Payment when the option was made or
    refreshed, `paid_atomic` the sum of the verified receipts by this option. Without a
    `selection_status` it was never selected.

    A Vault option has its payer's account, the vault and the funding operation; `action_id` is its
    live one-time action, and `used_action_ids` are those that were consumed. Other options have
    none of these. Their funds come from any wallet, from `payer_address` if it was given, straight
    into the Payment's escrow: `submissions` are the payer's claims, and `sighted` holds the
    evidence of their transfers that are not final.

    Where a provider makes the offers, `offer_id` is the newest that it has made, and `offer_count`
    how many it was asked for. A routed option is paid with `source`, and what cannot be delivered
    goes back to `refund_address`. `deliveries` are the transactions by which the provider says that
    it has paid the escrow.
    """

    collection: ClassVar[Collection] = Collection(
        "payment_options",
        columns={"payment_id": str, "created_at": int},  # the previous release has an index on them
        schema=3,
        upgrades={1: _name_vault},
        takes_over={"direct_options": _from_direct_option},
    )

    payment_id: str
    method: PaymentMethod
    status: str
    selection_status: str | None = None
    payer_account_id: str | None = None
    payer_address: str | None = None
    vault_id: str | None = None
    vault_address: str | None = None
    funding_operation_id: str | None = None
    chain_id: int
    asset_symbol: str
    required_atomic: Atomic = attrs.field(converter=atomic)
    paid_atomic: Atomic = attrs.field(default=ZERO, converter=atomic)
    fee_atomic: Atomic = attrs.field(default=ZERO, converter=atomic)
    action_id: str | None = attrs.field(default=None, repr=False)
    action_expires_at_ms: Instant | None = None
    used_action_ids: tuple[str, ...] = attrs.field(default=(), repr=False)
    sighted: tuple[str, ...] = ()
    submissions: tuple[Submission, ...] = ()
    offer_id: str | None = None
    offer_count: int = 0
    source: Asset | None = None
    refund_address: str | None = None
    deliveries: tuple[str, ...] = ()
    expires_at_ms: Instant
    created_at_ms: Instant
    updated_at_ms: Instant

    action_expires_at: ClassVar[FieldView[datetime | None]] = optional_instant_view(
        "action_expires_at_ms"
    )
    expires_at: ClassVar[FieldView[datetime]] = instant_view("expires_at_ms")
    created_at: ClassVar[FieldView[datetime]] = instant_view("created_at_ms")
    updated_at: ClassVar[FieldView[datetime]] = instant_view("updated_at_ms")

    @property
    def has_provider(self) -> bool:
        """Whether a provider makes its offers."""
        return METHODS[self.method].provider is not None

    @property
    def is_public(self) -> bool:
        """Whether everybody who holds the Payment's secret may see and use it."""
        return METHODS[self.method].created_by == "secret_holder"
