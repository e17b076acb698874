"""On-ramp bank accounts and the transfers to them, as they are stored (contract §7)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import ClassVar, Literal

import attrs

from payments_core.banks.incoming import IncomingRail
from payments_core.clock import Instant
from payments_core.field_views import FieldView, instant_view, optional_instant_view
from payments_core.money import ZERO, Atomic, atomic
from payments_core.networks import Asset, pin_token
from payments_core.storage.records import Collection, Document, Index, Lookup, Record, Unique

OnrampAccountStatus = Literal["pending", "active", "rejected", "disabled"]
BankTransactionStatus = Literal[
    "scheduled", "received", "in_review", "submitted", "settled", "refunded", "failed"
]
BankTransactionType = Literal["transfer", "micro_deposit"]
Disposition = Literal["undecided", "deliver", "refund"]
EntryCause = Literal["arrival", "refund", "delivery", "credit", "credit_reorged"]
BookAccount = Literal["sender", "bank", "escrow", "recipient"]
BOOK_ACCOUNTS: tuple[BookAccount, ...] = ("sender", "bank", "escrow", "recipient")

ONRAMP_NUMBER_SEAL = "onramp_account_number"


@attrs.frozen(kw_only=True)
class OnrampDestination:
    """Where the stablecoins go: a vault of the account, or a wallet."""

    type: Literal["vault", "wallet"]
    chain_id: int
    asset_symbol: str
    token_address: str = attrs.field(repr=False)
    decimals: int = attrs.field(repr=False)
    address: str

    @property
    def asset(self) -> Asset:
        """The asset that is credited."""
        return Asset(self.chain_id, self.asset_symbol, self.token_address, self.decimals)


def _pin_token(document: Document) -> Document:
    """The asset was found by its symbol in a table of the code."""
    return {**document, "destination": pin_token(document["destination"])}


@attrs.frozen(kw_only=True)
class DepositInstructions:
    """Where others send money, with the number sealed.

    `sealed_number` opens with the purpose ONRAMP_NUMBER_SEAL and the on-ramp account's id.
    """

    bank_name: str
    bank_address: str
    beneficiary_name: str
    beneficiary_address: str
    sealed_number: str = attrs.field(repr=False)
    last4: str
    routing_number: str
    reference: str
    rails: tuple[IncomingRail, ...]


@attrs.frozen(kw_only=True, slots=False)
class OnrampAccount(Record):
    """A reusable on-ramp: an account number at the bank, and where its money goes.

    `bank_key` is the key under which the bank made the number; it was stored before the bank was
    asked. `reason` is the bank's sentence about a rejection.
    """

    collection: ClassVar[Collection] = Collection(
        "onramp_accounts",
        columns={"account_id": str, "bank_key": str, "created_at": int},
        indexes=(Index("by_account", key=("account_id",), order=("created_at",), descending=True),),
        lookups=(Lookup("by_bank_key", ("bank_key",)),),
        schema=3,
        upgrades={2: _pin_token},
    )

    account_id: str
    external_user_id: str
    bank_key: str
    status: OnrampAccountStatus = "pending"
    currency: str
    destination: OnrampDestination
    instructions: DepositInstructions | None = None
    reason: str | None = None
    api_version: str
    created_at_ms: Instant
    updated_at_ms: Instant

    created_at: ClassVar[FieldView[datetime]] = instant_view("created_at_ms")
    updated_at: ClassVar[FieldView[datetime]] = instant_view("updated_at_ms")


class UnbalancedBooks(AssertionError):
    """Postings that do not add up to zero: a bug, and nothing is committed."""


@attrs.frozen(kw_only=True)
class FundingBooks:
    """Where the money of a bank transfer is, in atomic units of the credited asset.

    `sender` is the outside world, at most zero. Funds at the `bank` or in the `escrow` are in
    our care; `recipient` has the credited funds. The sum is always zero.
    """

    sender: Atomic = attrs.field(default=ZERO, converter=atomic)
    bank: Atomic = attrs.field(default=ZERO, converter=atomic)
    escrow: Atomic = attrs.field(default=ZERO, converter=atomic)
    recipient: Atomic = attrs.field(default=ZERO, converter=atomic)

    def __attrs_post_init__(self) -> None:
        if self.sender + self.bank + self.escrow + self.recipient != 0:
            raise UnbalancedBooks(self)


@attrs.frozen(kw_only=True, slots=False)
class BankTransaction(Record):
    """A bank transfer to an on-ramp, counted exactly once: `incoming_id` is the bank's own id.

    The destination is the on-ramp's, as it was when the transfer was first seen. What happens to
    the money is decided when it has arrived: the `disposition` is stored before the bank is asked
    to deliver or to send back, and never changes afterwards. `credit_id` is our transfer of the
    stablecoins from the transaction's own escrow; `credits` counts how often there was one.
    `delivery_asked_at` is when the bank had first answered that it delivers.
    """

    collection: ClassVar[Collection] = Collection(
        "bank_transactions",
        columns={
            "onramp_account_id": str,
            "account_id": str,
            "incoming_id": str,
            "status": str,
            "created_at": int,
        },
        indexes=(
            Index("by_onramp", key=("onramp_account_id",), order=("created_at",), descending=True),
            Index("by_incoming", key=("incoming_id",)),
            Index("by_created", order=("created_at",), descending=True),
        ),
        uniques=(Unique("incoming", ("incoming_id",)),),
        schema=4,
        upgrades={3: _pin_token},
    )

    onramp_account_id: str
    account_id: str
    external_user_id: str
    incoming_id: str
    rail: IncomingRail
    amount_cents: int
    type: BankTransactionType
    destination: OnrampDestination
    sender_name: str | None = attrs.field(default=None, repr=False)
    reference: str | None = None
    status: BankTransactionStatus
    status_version: int = 1
    reason: str | None = None
    disposition: Disposition = "undecided"
    credit_id: str | None = None
    credits: int = 0
    transaction_hash: str | None = None
    books: FundingBooks = attrs.field(factory=FundingBooks)
    entries: int = 0
    expected_at_ms: Instant | None = None
    received_at_ms: Instant | None = None
    held_at_ms: Instant | None = None
    delivery_asked_at_ms: Instant | None = None
    submitted_at_ms: Instant | None = None
    settled_at_ms: Instant | None = None
    refunded_at_ms: Instant | None = None
    api_version: str
    created_at_ms: Instant
    updated_at_ms: Instant

    expected_at: ClassVar[FieldView[datetime | None]] = optional_instant_view("expected_at_ms")
    received_at: ClassVar[FieldView[datetime | None]] = optional_instant_view("received_at_ms")
    held_at: ClassVar[FieldView[datetime | None]] = optional_instant_view("held_at_ms")
    delivery_asked_at: ClassVar[FieldView[datetime | None]] = optional_instant_view(
        "delivery_asked_at_ms"
    )
    submitted_at: ClassVar[FieldView[datetime | None]] = optional_instant_view("submitted_at_ms")
    settled_at: ClassVar[FieldView[datetime | None]] = optional_instant_view("settled_at_ms")
    refunded_at: ClassVar[FieldView[datetime | None]] = optional_instant_view("refunded_at_ms")
    created_at: ClassVar[FieldView[datetime]] = instant_view("created_at_ms")
    updated_at: ClassVar[FieldView[datetime]] = instant_view("updated_at_ms")

    @property
    def amount_atomic(self) -> int:
        """The amount in the smallest units of the credited asset: one dollar is one token."""
        return int(self.amount_cents * 10 ** (self.destination.asset.decimals - 2))


@attrs.frozen(kw_only=True, slots=False)
class FundingEntry(Record):
    """One movement of a bank transfer's money, never changed; the id is `<transaction id>/<n>`.

    `postings` add up to zero.
    """

    collection: ClassVar[Collection] = Collection(
        "bank_funding_entries",
        columns={"transaction_id": str, "number": int, "created_at": int},
        indexes=(
            Index("by_transaction", key=("transaction_id",), order=("number",)),
            Index("by_created", order=("created_at",)),
        ),
        schema=2,
    )

    transaction_id: str
    number: int
    cause: EntryCause
    postings: Mapping[str, Atomic]
    created_at_ms: Instant

    created_at: ClassVar[FieldView[datetime]] = instant_view("created_at_ms")


@attrs.frozen(kw_only=True, slots=False)
class UnmatchedTransfer(Record):
    """A bank transfer for no known on-ramp, in the directory; it is sent back.

    The id is `<mode>:<the bank's id>`. `status` is what the bank last reported.
    """

    collection: ClassVar[Collection] = Collection("unmatched_bank_transfers", schema=2)

    rail: IncomingRail
    amount_cents: int
    status: str
    created_at_ms: Instant
    updated_at_ms: Instant

    created_at: ClassVar[FieldView[datetime]] = instant_view("created_at_ms")
    updated_at: ClassVar[FieldView[datetime]] = instant_view("updated_at_ms")
