"""A Payment as it is stored (contract §6)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, ClassVar, Literal

import attrs

from payments_core.acceptance import Acceptance
from payments_core.banks.rails import Rail
from payments_core.brief_repr import brief_repr
from payments_core.chains.port import Contract
from payments_core.clock import Instant
from payments_core.credentials.secrets import Mode
from payments_core.field_views import FieldView, amount_view, instant_view, optional_instant_view
from payments_core.money import ZERO, Atomic, Money, atomic
from payments_core.networks import Asset
from payments_core.payment_settings.record import PaymentMethod
from payments_core.payments.earlier_documents import join_option_ids, pin_tokens
from payments_core.payments.fees import compute_fee
from payments_core.payments.journal.record import JournalBalances
from payments_core.payments.tolerance import compute_required
from payments_core.storage.records import Attention, Collection, Index, Lookup, Record

Intent = Literal["receive", "send", "collect"]
DestinationType = Literal["account", "payment_address", "wallet", "bank_account"]
CreatedBy = Literal["server", "client", "public"]

OFFRAMP_OWNER = "offramp"
"""The off-ramp address of an environment is the escrow of this owner; no Payment has such an id."""


@attrs.frozen(kw_only=True)
class Destination:
    """Who is paid, as the caller named it, and the resolved address.

    For a bank account that is the off-ramp address, and `statement_text` is for the recipient's
    statement.
    """

    __repr__ = brief_repr

    type: DestinationType
    address: str
    account_id: str | None = None
    external_user_id: str | None = None
    payment_address: str | None = None
    bank_account_id: str | None = None
    rail: Rail | None = None
    statement_text: str | None = attrs.field(default=None, repr=False)


@attrs.frozen(kw_only=True)
class Source:
    """The vault that a send pays from, or that a collect draws on under its mandate.

    `policy_version` is the version that a send passed; a collect's operation has its own.
    """

    __repr__ = brief_repr

    account_id: str
    external_user_id: str
    vault_id: str
    address: str
    mandate_id: str | None = None
    policy_version: int | None = None
    reserved_at_ms: Instant

    reserved_at: ClassVar[FieldView[datetime]] = instant_view("reserved_at_ms")


@attrs.frozen(kw_only=True)
class PaymentRoute:
    """How a Payment reaches its recipient in another asset, or on another chain: by a router.

    The release goes to `address`, the router's on the Payment's own chain, which belongs to this
    Payment only. For `amount_atomic` the router is expected to pay `expected_atomic` of the asset
    here to the destination, and at least `minimum_atomic`; for another amount, both change in
    proportion. `payment_hash` is the final release that the router was notified of.
    `delivered_atomic` was paid by `delivery_hash`, which is final. `return_hashes` are of its
    transfers back to the escrow, which are not receipts.
    """

    __repr__ = brief_repr

    key: str
    chain_id: int
    asset_symbol: str
    token_address: str = attrs.field(repr=False)
    decimals: int = attrs.field(repr=False)
    address: str
    amount_atomic: Atomic = attrs.field(converter=atomic)
    expected_atomic: Atomic = attrs.field(converter=atomic)
    minimum_atomic: Atomic = attrs.field(converter=atomic)
    payment_hash: str | None = None
    delivery_hash: str | None = None
    delivered_atomic: Atomic = attrs.field(default=ZERO, converter=atomic)
    return_hashes: tuple[str, ...] = ()

    @property
    def asset(self) -> Asset:
        """The asset that the recipient gets."""
        return Asset(self.chain_id, self.asset_symbol, self.token_address, self.decimals)

    def minimum_for(self, paid: int) -> int:
        """The minimum that the recipient may get for the amount paid to the router."""
        return self.minimum_atomic * paid // self.amount_atomic


@attrs.frozen(kw_only=True)
class PayerTotal:
    """The amount of verified receipts from one sender that was not sent back to it.

    `excess_atomic` is the part of `amount_atomic` that the Payment could not use. It is below zero
    if it was sent back and the chain then undid the receipt.
    """

    __repr__ = brief_repr

    address: str
    amount_atomic: Atomic = attrs.field(converter=atomic)
    excess_atomic: Atomic = attrs.field(default=ZERO, converter=atomic)


@attrs.frozen(kw_only=True)
class TimelineEntry:
    """A status, when it began, and a reason if the status repeats or needs explanation."""

    __repr__ = brief_repr

    status: str
    at_ms: Instant
    reason: str | None = None

    at: ClassVar[FieldView[datetime]] = instant_view("at_ms")


@attrs.frozen(kw_only=True)
class Reconciliation:
    """Whether a Payment needs a decision, and how it was resolved."""

    __repr__ = brief_repr

    status: Literal["none", "open", "resolved"] = "none"
    resolution: str | None = None
    resolved_at_ms: Instant | None = None

    resolved_at: ClassVar[FieldView[datetime | None]] = optional_instant_view("resolved_at_ms")


@attrs.frozen(kw_only=True)
class DecisionNote:
    """The partner's note on the decision that led to a version of the status."""

    status_version: int
    text: str


@attrs.frozen(kw_only=True)
class Payout:
    """A payout ordered from the bank under `key`, and its result.

    A retried Payment has another payout with another key; `attempt` counts them.
    `funded_at` is when its funds were finally at the off-ramp address. `reference`, `settles_on`
    (an ISO date) and the times from `submitted_at` on are the bank's. `failure` is a word for
    programs.
    """

    __repr__ = brief_repr

    key: str
    attempt: int = 1
    status: str
    bank_account_id: str
    rail: Rail
    amount_cents: int
    statement_text: str | None = attrs.field(default=None, repr=False)
    funded_at_ms: Instant | None = None
    reference: str | None = None
    submitted_at_ms: Instant | None = None
    settles_on: str | None = None
    settled_at_ms: Instant | None = None
    returned_at_ms: Instant | None = None
    return_code: str | None = None
    failure: str | None = None

    funded_at: ClassVar[FieldView[datetime | None]] = optional_instant_view("funded_at_ms")
    submitted_at: ClassVar[FieldView[datetime | None]] = optional_instant_view("submitted_at_ms")
    settled_at: ClassVar[FieldView[datetime | None]] = optional_instant_view("settled_at_ms")
    returned_at: ClassVar[FieldView[datetime | None]] = optional_instant_view("returned_at_ms")


@attrs.frozen(kw_only=True, slots=False)
class Payment(Record):
    """One Payment. All its amounts are in one asset.

    `received_atomic` is the sum of verified receipts, and `counted_atomic` the part of it that the
    release may take; the rest was excess from the start. `books` says where the money is now, after
    `entry_count` journal entries. `paid_by` lists the senders, the newest last. Possible further
    funds: `authorized` holds the ids of live operations, `sighted` those of the evidence of
    strangers' transactions that are not final. `option_ids` are the options of every method in the
    order of their creation, one of which may be selected. `release_id` is the transfer to the
    recipient, `release_hash` its transaction once it was sent, and `released_atomic` the amount it
    takes out of escrow; one that failed permanently is removed, so there is never a second beside
    it, and the Payment `can_retry`. `payout` is a send's payment by a bank; its `release_id` is the
    transfer to the off-ramp address. `refunding` holds the ids of refunds that are not final.
    `tolerance_bps`, `fee_bps` and `confirmations` are frozen at creation; a block is final for this
    Payment only with `confirmations` blocks on top of it, and if it is final for the chain, or
    accepted by `early_acceptance`, the network's row for its amount; `unsettled` has the hashes of
    transactions that count by that row only. `reconciliation_note` is the partner's note on the
    decision in `reconciliation`; `notes` are those of the newest decisions. `link_code` is sealed
    to the Payment's id; a send has none. `created_by` says who wrote `reference` and `description`;
    it is None for Payments older than the field. A Payment with a `route` is released to a router,
    which pays the `destination` in another asset. `quote_id` is that of the quote that it carries
    out. `misdirected` counts the receipts at the escrow that do not count.

    >>> paid = shop.payments.read(paid.id).payment
    >>> paid
    Payment(id='payment_...', status='succeeded', ...)
    >>> [entry.status for entry in paid.timeline]
    ['awaiting_payment', 'processing', 'accepted', 'executing', 'succeeded']
    >>> paid.amount, paid.amount_atomic
    ('25.00', 25000000)
    """

    collection: ClassVar[Collection] = Collection(
        "payments",
        columns={
            "status": str,
            "intent": str,
            "account_id": str,
            "reference": str,
            "session_id": str,
            "escrow_address": str,
            "sent_to": str,
            "chain_id": int,
            "attention": str,
            "created_at": int,
        },
        # None begins with `status`: PostgreSQL would write every index again at each change of it.
        # `attention` is null but for the few that wait for a decision.
        indexes=(
            Index("by_created", order=("created_at",), descending=True),
            Index("by_account", key=("account_id",), order=("created_at",), descending=True),
            Index("by_reference", key=("reference",), order=("created_at",), descending=True),
            Index("by_sent_to", key=("sent_to",), order=("created_at",), descending=True),
            Index("by_session", key=("session_id",)),
            Index("by_attention", key=("attention",), order=("created_at",)),
        ),
        lookups=(Lookup("by_escrow", ("escrow_address",)),),
        schema=9,
        upgrades={5: join_option_ids, 7: pin_tokens},
    )

    intent: Intent = "receive"
    status: str
    status_version: int
    account_id: str | None = None
    external_user_id: str | None = None
    chain_id: int
    asset_symbol: str
    token_address: str = attrs.field(repr=False)
    decimals: int = attrs.field(repr=False)
    amount_atomic: Atomic = attrs.field(converter=atomic)
    received_atomic: Atomic = attrs.field(default=ZERO, converter=atomic)
    counted_atomic: Atomic = attrs.field(default=ZERO, converter=atomic)
    books: JournalBalances = attrs.field(factory=JournalBalances)
    entry_count: int = 0
    paid_by: tuple[PayerTotal, ...] = ()
    settled_atomic: Atomic = attrs.field(default=ZERO, converter=atomic)
    refunded_atomic: Atomic = attrs.field(default=ZERO, converter=atomic)
    returned_atomic: Atomic = attrs.field(default=ZERO, converter=atomic)
    misdirected: int = 0
    fee_bps: int = 0
    tolerance_bps: int = 0
    confirmations: int = 0
    early_acceptance: Acceptance | None = None
    unsettled: tuple[str, ...] = ()
    source: Source | None = None
    destination: Destination
    escrow_address: str | None
    allowed_methods: tuple[PaymentMethod, ...]
    selected_option_id: str | None = None
    option_ids: tuple[str, ...] = ()
    release_id: str | None = None
    release_hash: str | None = None
    released_atomic: Atomic = attrs.field(default=ZERO, converter=atomic)
    payout: Payout | None = None
    refunding: tuple[str, ...] = ()
    authorized: tuple[str, ...] = ()
    sighted: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    reconciliation: Reconciliation = Reconciliation()
    reconciliation_note: str | None = None
    notes: tuple[DecisionNote, ...] = ()
    session_id: str
    timeline: tuple[TimelineEntry, ...] = ()
    failure: str | None = None
    can_retry: bool = False
    reference: str | None = None
    description: str | None = None
    metadata: Mapping[str, Any] | None = None
    api_version: str
    link_code: str | None = attrs.field(default=None, repr=False)
    success_url: str | None = None
    cancel_url: str | None = None
    created_by: CreatedBy | None = None
    route: PaymentRoute | None = None
    quote_id: str | None = None
    expires_at_ms: Instant
    monitoring_expires_at_ms: Instant
    succeeded_at_ms: Instant | None = None
    cancelled_at_ms: Instant | None = None
    created_at_ms: Instant
    updated_at_ms: Instant

    expires_at: ClassVar[FieldView[datetime]] = instant_view("expires_at_ms")
    monitoring_expires_at: ClassVar[FieldView[datetime]] = instant_view("monitoring_expires_at_ms")
    succeeded_at: ClassVar[FieldView[datetime | None]] = optional_instant_view("succeeded_at_ms")
    cancelled_at: ClassVar[FieldView[datetime | None]] = optional_instant_view("cancelled_at_ms")
    amount: ClassVar[FieldView[str]] = amount_view("amount_atomic")
    created_at: ClassVar[FieldView[datetime]] = instant_view("created_at_ms")
    updated_at: ClassVar[FieldView[datetime]] = instant_view("updated_at_ms")

    @property
    def attention(self) -> Attention | None:
        """Whether it waits for somebody's decision."""
        return "needed" if self.status == "action_required" else None

    @property
    def asset(self) -> Asset:
        """The asset of every amount."""
        return Asset(self.chain_id, self.asset_symbol, self.token_address, self.decimals)

    @property
    def sent_to(self) -> str | None:
        """The account that a send goes to; other Payments belong to their recipient."""
        return self.destination.account_id if self.intent == "send" else None

    @property
    def escrow(self) -> Contract | None:
        """The escrow as the contract that pays; a send has none."""
        if self.escrow_address is None:
            return None
        return Contract("escrow", self.id, self.escrow_address)

    @property
    def payout_address(self) -> str:
        """Where the release goes: to the recipient, or to the router on the way."""
        return self.destination.address if self.route is None else self.route.address

    @property
    def required_atomic(self) -> int:
        """The atomic amount from which the Payment counts as covered."""
        return compute_required(self.amount_atomic, self.tolerance_bps)

    @property
    def remaining(self) -> Money:
        """The amount still to be received; never below zero."""
        return Money(max(0, self.amount_atomic - self.counted_atomic), self.asset.id)

    @property
    def is_pending(self) -> bool:
        """Whether anything in progress may still bring funds."""
        return bool(self.authorized or self.sighted)

    @property
    def excess_atomic(self) -> int:
        """The amount received beyond the Payment's amount and not sent back; never below zero.

        The books are below zero if a reorg beyond finality undid receipts whose funds were sent
        back.
        """
        return max(0, self.books.excess)

    @property
    def releasable_atomic(self) -> int:
        """The amount that the release takes out of escrow: fixed once there is one."""
        if self.release_id:
            return self.released_atomic
        return max(
            0, min(self.books.escrow, self.books.held_atomic)
        )  # excess undone may be missing

    @property
    def fee_atomic(self) -> int:
        """The recipient's fee on the released amount, rounded down (`fees.py`)."""
        return compute_fee(self.releasable_atomic, self.fee_bps)


@attrs.frozen(kw_only=True, slots=False)
class PaymentLink(Record):
    """A checkout link, by the keyed digest of its code.

    It says its `mode`, so that a code of the other mode is refused without reading any further.
    """

    collection: ClassVar[Collection] = Collection("payment_links")

    payment_id: str
    mode: Mode


def payout_key(partition: str, payment_id: str, attempt: int) -> str:
    """The bank's key of a payout: it names the Payment, so that a notice finds it."""
    return f"{partition}/{payment_id}/{attempt}"


def parse_payout_key(key: str) -> tuple[str, str] | None:
    """The partition and the Payment's id of a key; None for a key that is not ours."""
    partition, _, rest = key.partition("/")
    payment_id, _, attempt = rest.partition("/")
    return (partition, payment_id) if partition and payment_id and attempt else None
