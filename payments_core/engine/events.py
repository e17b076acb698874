"""The event catalogue and the outbox row (interface "Events", contract §8).

An event row commits with the change that caused it: no change without its event, and no event
without its change. Names and payload fields are a table; the reference is printed from it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

import attrs
import msgspec

from payments_core.clock import Instant
from payments_core.storage.records import Collection, Index, Record


@attrs.frozen
class EventType:
    """A kind of event: its meaning, and the fields of its payload.

    Kinds not yet `emitted` are listed so that a subscription made today need not change.
    """

    name: str
    meaning: str
    fields: tuple[str, ...]
    emitted: bool = True


_PAYMENT = (
    "paymentId",
    "accountId",
    "status",
    "statusVersion",
    "labels",
    "assetSymbol",
    "chainId",
    "amountAtomic",
    "receivedAmountAtomic",
    "excessAmountAtomic",
    "settledAmountAtomic",
    "refundedAmountAtomic",
    "createdBy",
    "returnedAmountAtomic",
)
_FUNDING = (
    "paymentId",
    "optionId",
    "fundingOperationId",
    "status",
    "statusVersion",
    "amountAtomic",
)
_REFUND = ("paymentId", "refundId", "status", "statusVersion", "amountAtomic")
_DEPOSIT = (
    "accountId",
    "depositId",
    "status",
    "statusVersion",
    "chainId",
    "assetSymbol",
    "amountAtomic",
    "transactionHash",
)
_ARRIVED = ("reason", "chainId", "assetSymbol", "tokenAddress", "amountAtomic", "from")
"""What arrived, of misdirected funds: on which chain, and in which token."""

_MISDIRECTED_DEPOSIT = (
    "accountId",
    "depositId",
    "status",
    "statusVersion",
    *_ARRIVED,
    "transactionHash",
)

_ACCOUNT = ("accountId", "externalUserId", "status")
_BANK_ACCOUNT = ("accountId", "bankAccountId", "status")
_DISPUTE = ("sessionId", "paymentId", "status")
_BANK_FUNDING = (
    "accountId",
    "onrampBankAccountId",
    "transactionId",
    "status",
    "statusVersion",
    "amount",
)

_ENDPOINT = ("webhookId", "deliveryId", "failureReason")

TEST = "webhook.test"
"""It goes to the endpoint that its payload names, whatever its subscriptions."""

FAILING, RECOVERED = "webhook.failing", "webhook.recovered"
"""They go to all endpoints except the one that their payload names."""

CATALOGUE: tuple[EventType, ...] = (
    EventType("payment.created", "A Payment was created and waits for funds.", _PAYMENT),
    EventType("payment.processing", "Funds are on their way and are not proven yet.", _PAYMENT),
    EventType("payment.underpaid", "Proven funds do not cover the amount.", _PAYMENT),
    EventType("payment.accepted", "Proven funds cover the amount.", _PAYMENT),
    EventType("payment.executing", "The release to the recipient was sent.", _PAYMENT),
    EventType("payment.succeeded", "The recipient has the funds, and this is final.", _PAYMENT),
    EventType("payment.action_required", "The Payment waits for your decision.", _PAYMENT),
    EventType("payment.overpaid", "Proven funds exceed the amount; the excess is held.", _PAYMENT),
    EventType("payment.expired", "The Payment expired with nothing received.", _PAYMENT),
    EventType("payment.cancelled", "The Payment was cancelled before funds moved.", _PAYMENT),
    EventType("payment.late", "Funds were proven after the Payment's end or release.", _PAYMENT),
    EventType(
        "payment.misdirected",
        "Funds that do not count are at the escrow: another token, or another chain.",
        ("paymentId", "accountId", "status", "statusVersion", "labels", "receiptId", *_ARRIVED),
    ),
    EventType("payment.reorged", "A reorg undid a proven receipt, or restored one.", _PAYMENT),
    EventType("payment.reconciled", "Your decision was carried out.", (*_PAYMENT, "note")),
    EventType("payment.refunded", "A refund is final.", _PAYMENT),
    EventType("payment.failed", "The Payment was written off.", _PAYMENT),
    EventType("refund.created", "A refund was requested.", _REFUND),
    EventType("refund.succeeded", "A refund is final on chain.", _REFUND),
    EventType("refund.failed", "A refund failed permanently; it can be requested again.", _REFUND),
    EventType("vault_funding.authorized", "A payer's vault authorized the transfer.", _FUNDING),
    EventType("vault_funding.broadcast", "The transfer was sent to the chain.", _FUNDING),
    EventType("vault_funding.confirmed", "The transfer is proven and final.", _FUNDING),
    EventType("vault_funding.failed", "The transfer will not happen.", _FUNDING),
    EventType("deposit.detected", "Funds were seen at a deposit address.", _DEPOSIT),
    EventType("deposit.confirmed", "The deposit is final on chain.", _DEPOSIT),
    EventType("deposit.settled", "The deposit is in the account's vault.", _DEPOSIT),
    EventType("deposit.failed", "The chain undid the deposit, or its sweep failed.", _DEPOSIT),
    EventType(
        "deposit.misdirected",
        "A token that is not credited is at a deposit address.",
        _MISDIRECTED_DEPOSIT,
    ),
    EventType(
        "deposit.returned",
        "A deposit that is not credited was sent back, and this is final.",
        (*_MISDIRECTED_DEPOSIT, "destination", "returnTransactionHash"),
    ),
    EventType("account.created", "An account was created.", _ACCOUNT),
    EventType("account.updated", "An account's data or status changed.", _ACCOUNT),
    EventType(
        "account.capability_updated",
        "A capability of an account changed.",
        ("accountId", "capability", "status"),
    ),
    EventType("bank_account.created", "A bank account was added.", _BANK_ACCOUNT),
    EventType(
        "bank_account.updated", "The bank approved or rejected a bank account.", _BANK_ACCOUNT
    ),
    EventType("bank_funding.scheduled", "A bank transfer is on its way.", _BANK_FUNDING),
    EventType("bank_funding.received", "A bank transfer has arrived.", _BANK_FUNDING),
    EventType(
        "bank_funding.in_review",
        "The bank reviews a transfer, the account cannot be credited now, or the credit failed.",
        _BANK_FUNDING,
    ),
    EventType(
        "bank_funding.submitted", "The bank transfer's stablecoins were sent.", _BANK_FUNDING
    ),
    EventType(
        "bank_funding.settled", "The bank transfer's stablecoins have arrived.", _BANK_FUNDING
    ),
    EventType("bank_funding.refunded", "The bank transfer was sent back.", _BANK_FUNDING),
    EventType("bank_funding.failed", "The bank transfer never arrived.", _BANK_FUNDING),
    EventType("dispute.flagged", "A dispute was flagged.", _DISPUTE),
    EventType("dispute.resolved", "A dispute was resolved.", _DISPUTE),
    EventType(TEST, "A test event that you requested for one endpoint.", ("webhookId",)),
    EventType(
        FAILING, "An endpoint fails; the other endpoints get this at most once an hour.", _ENDPOINT
    ),
    EventType(
        RECOVERED, "An endpoint that failed works again; the other endpoints get this.", _ENDPOINT
    ),
)

MAX_PAYLOAD_BYTES = 32_000
"""A delivery holds it as text, where its quotes are escaped, beside an endpoint's answer; all of
that must fit into one document."""

BY_NAME: Mapping[str, EventType] = {event.name: event for event in CATALOGUE}

EventName = Annotated[
    str,
    msgspec.Meta(
        min_length=1,
        max_length=64,
        extra={
            "values": tuple(BY_NAME),
            "fault": "is not an event of the catalog",
            "rule": "an event of the catalog",
        },
    ),
]


@attrs.frozen
class NewEvent:
    """An event as a decision states it; `commit` gives it an id and stores it."""

    name: str
    payload: Mapping[str, Any]
    api_version: str
    account_id: str | None = None
    external_user_id: str | None = None

    def __attrs_post_init__(self) -> None:
        declared = BY_NAME[self.name].fields
        if set(self.payload) != set(declared):
            raise ValueError(f"{self.name}: the payload has {sorted(self.payload)}")
        if len(msgspec.json.encode(self.payload)) > MAX_PAYLOAD_BYTES:
            raise ValueError(f"{self.name}: the payload is too large to deliver")


@attrs.frozen(kw_only=True, slots=False)
class Event(Record):
    """A row of the outbox. Its id is the `x-service-event-id` of every delivery."""

    collection: ClassVar[Collection] = Collection(
        "events",
        columns={"name": str, "account_id": str, "created_at": int},
        indexes=(
            Index("by_created", order=("created_at",)),
            Index("newest", order=("created_at",), descending=True),
            Index("by_account", key=("account_id",), order=("created_at",), descending=True),
        ),
    )

    name: str
    api_version: str
    created_at: Instant
    payload: Mapping[str, Any]
    account_id: str | None = None
    external_user_id: str | None = None
