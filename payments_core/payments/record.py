"""A Payment as it is stored (contract §6)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import attrs

from payments_core.assets import Asset, asset_of
from payments_core.clock import Instant
from payments_core.money import ZERO, Atomic, Money, atomic
from payments_core.storage.records import Collection, Index, Record

DestinationType = Literal["account", "payment_address", "wallet"]
Method = Literal["vault", "direct", "routing", "hosted_onramp"]


@attrs.frozen(kw_only=True)
class Destination:
    """Who is paid, as the caller named it, and the address that it comes down to."""

    type: DestinationType
    address: str
    account_id: str | None = None
    external_user_id: str | None = None
    payment_address: str | None = None


@attrs.frozen(kw_only=True)
class TimelineEntry:
    """A status, when it began, and why where there is more to say than the status does."""

    status: str
    at: Instant
    reason: str | None = None


@attrs.frozen(kw_only=True)
class Reconciliation:
    """What is out of the ordinary about a Payment, and whether somebody settled it."""

    status: Literal["none", "open", "resolved"] = "none"
    resolution: str | None = None
    resolved_at: Instant | None = None


@attrs.frozen(kw_only=True)
class Payment(Record):
    """One receive Payment. All its amounts are in one asset.

    `live_attempts` counts authorizations that may still move funds. `release_id` is the outgoing
    transfer to the recipient: there is never a second. `tolerance_bps` and `fee_bps`
    are frozen at creation. `link_code` is sealed to the Payment's id.
    """

    collection: ClassVar[Collection] = Collection(
        "payments",
        columns={
            "status": str,
            "intent": str,
            "account_id": str,
            "reference": str,
            "created_at": int,
        },
        indexes=(
            Index("by_created", order=("created_at",), descending=True),
            Index("by_account", key=("account_id",), order=("created_at",), descending=True),
        ),
    )

    intent: Literal["receive"] = "receive"
    status: str
    status_version: int
    account_id: str | None = None
    external_user_id: str | None = None
    chain_id: int
    asset_symbol: str
    amount: Atomic = attrs.field(converter=atomic)
    received: Atomic = attrs.field(default=ZERO, converter=atomic)
    excess: Atomic = attrs.field(default=ZERO, converter=atomic)
    settled: Atomic = attrs.field(default=ZERO, converter=atomic)
    refunded: Atomic = attrs.field(default=ZERO, converter=atomic)
    fee_bps: int = 0
    tolerance_bps: int = 0
    destination: Destination
    escrow_address: str
    allowed_methods: tuple[Method, ...]
    selected_option_id: str | None = None
    option_ids: tuple[str, ...] = ()
    release_id: str | None = None
    live_attempts: int = 0
    labels: tuple[str, ...] = ()
    reconciliation: Reconciliation = Reconciliation()
    session_id: str
    timeline: tuple[TimelineEntry, ...] = ()
    failure: str | None = None
    reference: str | None = None
    description: str | None = None
    metadata: Mapping[str, Any] | None = None
    api_version: str
    link_code: str = attrs.field(repr=False)
    success_url: str | None = None
    cancel_url: str | None = None
    expires_at: Instant
    monitoring_expires_at: Instant
    succeeded_at: Instant | None = None
    cancelled_at: Instant | None = None
    created_at: Instant
    updated_at: Instant

    @property
    def asset(self) -> Asset:
        """The asset of every amount."""
        return asset_of(self.chain_id, self.asset_symbol)

    @property
    def required(self) -> int:
        """The atomic amount from which the Payment counts as covered."""
        return self.amount - self.amount * self.tolerance_bps // 10_000

    @property
    def remaining(self) -> Money:
        """What is still to be received; never below zero."""
        return Money(max(0, self.amount - self.received), self.asset.id)

    @property
    def releasable(self) -> int:
        """What goes on to the recipient and the fee: what arrived, up to the amount."""
        return min(self.received, self.amount)

    @property
    def fee(self) -> int:
        """The recipient's fee on what is released, rounded down (contract §6 "Fees")."""
        return self.releasable * self.fee_bps // 10_000


@attrs.frozen(kw_only=True)
class PaymentLink(Record):
    """A checkout link, by the keyed digest of its code."""

    collection: ClassVar[Collection] = Collection("payment_links")

    payment_id: str
