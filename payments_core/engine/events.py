"""The event catalogue and the outbox row (interface "Events", contract §8).

An event row commits with the change that caused it: no change without its event, and no event
without its change. Names and payload fields are a table; the reference is printed from it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Annotated, Any, ClassVar

import attrs
import msgspec

from payments_core.clock import Instant
from payments_core.field_views import FieldView, instant_view
from payments_core.storage.records import Collection, Index, Record


@attrs.frozen
class Field:
    """A field of a payload: what it means, and a sample of it.

    In a sample, `payment_...` stands for any id with that prefix, `0x...` for any hash, and `*` for
    the last word of the event's name.
    """

    meaning: str
    sample: Any
    nullable: bool = False


@attrs.frozen
class EventType:
    """A kind of event: its meaning, and the fields of its payload by their names.

    `differs` replaces samples of the fields. `intents` are those of the Payments that have the
    event. Kinds not yet `emitted` are listed so that a subscription made today need not change.
    """

    name: str
    meaning: str
    fields: Mapping[str, Field]
    differs: Mapping[str, Any] = attrs.field(factory=dict)
    intents: tuple[str, ...] = ("receive", "send", "collect")
    emitted: bool = True

    @property
    def sample(self) -> dict[str, Any]:
        """A payload as documents show it: short ids, and `0x...` for hashes."""
        own = self.name.rpartition(".")[2]
        samples = {name: field.sample for name, field in self.fields.items()}
        return {name: own if it == "*" else it for name, it in {**samples, **self.differs}.items()}

    def make_payload(self, make_id: Callable[[str], str]) -> dict[str, Any]:
        """The sample with whole ids and hashes; `make_id` makes an id from its prefix."""
        return {name: _lengthen(value, make_id) for name, value in self.sample.items()}


def _lengthen(sample: Any, make_id: Callable[[str], str]) -> Any:
    if sample == "0x...":
        return "0x" + hashlib.sha256(make_id("tx").encode()).hexdigest()
    if isinstance(sample, str) and sample.endswith("_..."):
        return make_id(sample.removesuffix("_..."))
    return sample


Fields = Mapping[str, Field]

_PAYMENT_ID = Field("The Payment's id.", "payment_...")
_ACCOUNT_ID = Field("The account's id.", "acct_...", nullable=True)
_STATUS = Field("Its state.", "*")
_STATUS_VERSION = Field("Rises by one at each change of `status`; a higher version is newer.", 1)
_AMOUNT_ATOMIC = Field("The amount in the asset's smallest unit, as a digit string.", "25000000")
_TRANSACTION_HASH = Field("The hash of the transaction on the chain.", "0x...")
_OF_THE_PARTNER: Mapping[str, Field] = {
    "reference": Field(
        "Your own id or text for it; null without one, and if a visitor of a public page wrote it.",
        "order-1042",
        nullable=True,
    ),
    "externalUserId": Field(
        "Your own id of the recipient's user; null if no account is paid.",
        "user-1042",
        nullable=True,
    ),
    "metadata": Field("Your own data; null without any.", {"orderId": "1042"}, nullable=True),
}
_LABELS = Field(
    "The exceptions that occurred; labels are added and never removed, except `in_review`.", []
)

_PAYMENT: Fields = {
    "paymentId": _PAYMENT_ID,
    "accountId": Field(
        "The recipient's account; null if a wallet or a bank account is paid.",
        "acct_...",
        nullable=True,
    ),
    "status": Field("Its state, as listed in the table of state machines.", "*"),
    "statusVersion": _STATUS_VERSION,
    "labels": _LABELS,
    "assetSymbol": Field("The asset's symbol, such as `USDC`.", "USDC"),
    "chainId": Field("The number of the chain, such as 8453 for Base.", 8453),
    "amountAtomic": Field("The Payment's amount, in the asset's smallest unit.", "25000000"),
    "receivedAmountAtomic": Field(
        "The sum of verified receipts, in the smallest unit.", "25000000"
    ),
    "excessAmountAtomic": Field(
        "What was received beyond the amount and has not been refunded, in the smallest unit.", "0"
    ),
    "settledAmountAtomic": Field(
        "What the recipient has received, after the fee, in the smallest unit.", "0"
    ),
    "refundedAmountAtomic": Field("The sum of final refunds, in the smallest unit.", "0"),
    "createdBy": Field(
        "Who created it: your backend, a client token, or public checkout. Null for Payments that"
        " are older than this field.",
        "server",
        nullable=True,
    ),
    "returnedAmountAtomic": Field(
        "What the recipient of a payment from a vault has sent back, in the smallest unit.", "0"
    ),
    **_OF_THE_PARTNER,
}
_PROCESSING: Fields = {
    **_PAYMENT,
    "receiptId": Field(
        "The transfer that was seen; null if a vault's transfer was authorized and is not sent"
        " yet.",
        "receipt_...",
        nullable=True,
    ),
    "confirmations": Field("How many blocks were on top of its block.", 0, nullable=True),
    "required": Field(
        "How many blocks must be on top; null if the chain's own finality decides.",
        3,
        nullable=True,
    ),
    "estimatedAt": Field(
        "When it counts, about; null if nobody knows.",
        "2026-09-09T12:00:06.000Z",
        nullable=True,
    ),
}
_IN_REVIEW: Fields = {
    **_PAYMENT,
    "refundId": Field(
        "The refund that waits; null if the transfer to the recipient waits, or a return of"
        " misdirected funds.",
        "refund_...",
        nullable=True,
    ),
}
_RECONCILED: Fields = {
    **_PAYMENT,
    "note": Field(
        "The note of the last decision; null without one.",
        "Agreed with the customer.",
        nullable=True,
    ),
}
_FUNDING: Fields = {
    "paymentId": _PAYMENT_ID,
    "optionId": Field("The option's id.", "pay_option_..."),
    "fundingOperationId": Field(
        "The id of the transfer from the payer's vault.", "pay_funding_..."
    ),
    "status": _STATUS,
    "statusVersion": _STATUS_VERSION,
    "amountAtomic": _AMOUNT_ATOMIC,
}
_REFUND: Fields = {
    "paymentId": _PAYMENT_ID,
    "refundId": Field("The refund's id.", "refund_..."),
    "status": _STATUS,
    "statusVersion": _STATUS_VERSION,
    "amountAtomic": _AMOUNT_ATOMIC,
}
_DEPOSIT: Fields = {
    "accountId": _ACCOUNT_ID,
    "depositId": Field("The deposit's id.", "deposit_..."),
    "status": _STATUS,
    "statusVersion": _STATUS_VERSION,
    "chainId": _PAYMENT["chainId"],
    "assetSymbol": _PAYMENT["assetSymbol"],
    "amountAtomic": _AMOUNT_ATOMIC,
    "transactionHash": _TRANSACTION_HASH,
}
_ARRIVED: Fields = {
    "reason": Field("Why it does not count.", "wrong_token"),
    "chainId": Field("The chain on which it arrived.", 8453),
    "assetSymbol": Field("The token that arrived.", "DAI"),
    "tokenAddress": Field(
        "The address of the asset's contract on the chain.",
        "0x50c5725949A6F0c72E6C4a641F24049A917DB0Cb",
    ),
    "amountAtomic": Field("The amount that arrived, in the token's smallest unit.", "25000000"),
    "from": Field("The address that sent the funds.", "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"),
}
"""What arrived, of misdirected funds: on which chain, and in which token."""

_MISDIRECTED_PAYMENT: Fields = {
    "paymentId": _PAYMENT_ID,
    "accountId": _ACCOUNT_ID,
    "status": _STATUS,
    "statusVersion": _STATUS_VERSION,
    "labels": _LABELS,
    "receiptId": Field("The receipt's id.", "receipt_..."),
    **_ARRIVED,
    "createdBy": _PAYMENT["createdBy"],
    **_OF_THE_PARTNER,
}
_MISDIRECTED_DEPOSIT: Fields = {
    "accountId": _ACCOUNT_ID,
    "depositId": _DEPOSIT["depositId"],
    "status": Field("Its state.", "rejected"),
    "statusVersion": _STATUS_VERSION,
    **_ARRIVED,
    "transactionHash": _TRANSACTION_HASH,
}
_RETURNED: Fields = {
    **_MISDIRECTED_DEPOSIT,
    "destination": Field("The address that got it.", _ARRIVED["from"].sample),
    "returnTransactionHash": Field("The transaction that sent it back.", "0x..."),
}
_ACCOUNT: Fields = {
    "accountId": _ACCOUNT_ID,
    "externalUserId": Field("Your own id of the account's user.", "user-1042"),
    "status": Field("The account's state.", "active"),
}
_CAPABILITY: Fields = {
    "accountId": _ACCOUNT_ID,
    "capability": Field("The capability's name.", "us_bank_payout"),
    "status": Field("The capability's new state.", "active"),
}
_BANK_ACCOUNT: Fields = {
    "accountId": _ACCOUNT_ID,
    "bankAccountId": Field("The id of the bank account.", "bank_account_..."),
    "status": _STATUS,
}
_BANK_FUNDING: Fields = {
    "accountId": _ACCOUNT_ID,
    "onrampBankAccountId": Field("The id of the on-ramp bank account.", "onramp_account_..."),
    "transactionId": Field("The id of the bank transaction.", "bank_txn_..."),
    "status": _STATUS,
    "statusVersion": _STATUS_VERSION,
    "amount": Field("The amount in dollars, as a decimal string.", "25.00"),
}
_DISPUTE: Fields = {
    "sessionId": Field("The session's id.", "ses_..."),
    "paymentId": _PAYMENT_ID,
    "status": _STATUS,
}
_ENDPOINT: Fields = {
    "webhookId": Field(
        "The endpoint that the event is about; the event is not sent to it.", "webhook_..."
    ),
    "deliveryId": Field("The delivery that failed.", "delivery_..."),
    "failureReason": Field(
        "Why it fails, in a sentence; null if it works again.",
        "The endpoint answered 500.",
        nullable=True,
    ),
}

_RECOVERED_ENDPOINT: Fields = {
    **_ENDPOINT,
    "deliveryId": Field("The delivery that was accepted.", "delivery_..."),
}
_TESTED: Fields = {
    "webhookId": Field("The endpoint that receives the test event.", "webhook_..."),
}

_PAID_IN: tuple[str, ...] = ("receive", "collect")
"""A send has no receipts and no options."""

_IN_SESSION: tuple[str, ...] = ("receive",)
"""Only such a Payment has a session."""

TEST = "webhook.test"
"""A test event goes to the endpoint that its payload names, whatever its subscriptions."""

FAILING, RECOVERED = "webhook.failing", "webhook.recovered"
"""The events on health go to all endpoints except the one that their payload names."""

_UNPAID: Mapping[str, Any] = {"receivedAmountAtomic": "0"}
_SHORT: Mapping[str, Any] = {"labels": ["underpaid"], "receivedAmountAtomic": "15000000"}
_EXCESS = {"receivedAmountAtomic": "30000000", "excessAmountAtomic": "5000000"}
_SETTLED: Mapping[str, Any] = {"settledAmountAtomic": "25000000"}
_AWAITING: Mapping[str, Any] = {"status": "awaiting_payment"}

CATALOGUE: tuple[EventType, ...] = (
    EventType("payment.created", "A Payment was created and waits for funds.",
        _PAYMENT, {**_AWAITING, **_UNPAID}),
    EventType("payment.processing", "Funds are on their way and are not proven yet.",
        _PROCESSING, _UNPAID, _PAID_IN),
    EventType("payment.underpaid", "Proven funds do not cover the amount.",
        _PAYMENT, {**_AWAITING, **_SHORT}, _PAID_IN),
    EventType("payment.accepted", "Proven funds cover the amount.", _PAYMENT, {}, _PAID_IN),
    EventType("payment.in_review",
        "Screening has not cleared whom a transfer concerns; it waits, and nothing is signed.",
        _IN_REVIEW, {"status": "accepted", "labels": ["in_review"], "refundId": None}),
    EventType("payment.executing", "The release to the recipient was sent.", _PAYMENT),
    EventType("payment.succeeded", "The recipient has the funds, and this is final.",
        _PAYMENT, _SETTLED),
    EventType("payment.action_required", "The Payment waits for your decision.",
        _PAYMENT, {"labels": ["execution_failed"]}),
    EventType("payment.overpaid", "Proven funds exceed the amount; the excess is held.",
        _PAYMENT, {"status": "accepted", "labels": ["overpaid"], **_EXCESS}, _PAID_IN),
    EventType("payment.expired", "The Payment expired with nothing received.",
        _PAYMENT, _UNPAID, _PAID_IN),
    EventType("payment.cancelled", "The Payment was cancelled before funds moved.",
        _PAYMENT, _UNPAID),
    EventType("payment.late", "Funds were proven after the Payment's end or release.",
        _PAYMENT, {"status": "expired", "labels": ["late"]}, _PAID_IN),
    EventType("payment.misdirected",
        "Funds that do not count are at the escrow: another token, or another chain.",
        _MISDIRECTED_PAYMENT, {**_AWAITING, "labels": ["misdirected"]}, _PAID_IN),
    EventType("payment.reorged", "A reorg undid a proven receipt, or restored one.",
        _PAYMENT, {"status": "executing", "labels": ["reorged"], **_UNPAID}, _PAID_IN),
    EventType("payment.reconciled", "Your decision was carried out.",
        _RECONCILED, {"status": "accepted", "labels": ["late"]}),
    EventType("payment.refunded", "A refund is final.",
        _PAYMENT, {**_SETTLED, "refundedAmountAtomic": "25000000"}, _PAID_IN),
    EventType("payment.failed", "The Payment was written off.", _PAYMENT, _SHORT),
    EventType("refund.created", "A refund was requested.", _REFUND, {}, _PAID_IN),
    EventType("refund.succeeded", "A refund is final on chain.",
        _REFUND, {"statusVersion": 3}, _PAID_IN),
    EventType("refund.failed", "A refund failed permanently; it can be requested again.",
        _REFUND, {"statusVersion": 3}, _PAID_IN),
    EventType("vault_funding.authorized", "A payer's vault authorized the transfer.",
        _FUNDING, {"statusVersion": 2}, _PAID_IN),
    EventType("vault_funding.broadcast", "The transfer was sent to the chain.",
        _FUNDING, {"statusVersion": 3}, _PAID_IN),
    EventType("vault_funding.confirmed", "The transfer is proven and final.",
        _FUNDING, {"statusVersion": 4}, _PAID_IN),
    EventType("vault_funding.failed", "The transfer will not happen.",
        _FUNDING, {"statusVersion": 3}, _PAID_IN),
    EventType("deposit.detected", "Funds were seen at a deposit address.", _DEPOSIT),
    EventType("deposit.confirmed", "The deposit is final on chain.",
        _DEPOSIT, {"statusVersion": 2}),
    EventType("deposit.settled", "The deposit is in the account's vault.",
        _DEPOSIT, {"statusVersion": 3}),
    EventType("deposit.failed", "The chain undid the deposit, or its sweep failed.",
        _DEPOSIT, {"statusVersion": 2}),
    EventType("deposit.misdirected", "A token that is not credited is at a deposit address.",
        _MISDIRECTED_DEPOSIT, {"statusVersion": 2}),
    EventType("deposit.returned",
        "A deposit that is not credited was sent back, and this is final.",
        _RETURNED, {"statusVersion": 3}),
    EventType("account.created", "An account was created.", _ACCOUNT),
    EventType("account.updated", "An account's data or status changed.", _ACCOUNT),
    EventType("account.capability_updated", "A capability of an account changed.", _CAPABILITY),
    EventType("bank_account.created", "A bank account was added.",
        _BANK_ACCOUNT, {"status": "pending"}),
    EventType("bank_account.updated", "The bank approved or rejected a bank account.",
        _BANK_ACCOUNT, {"status": "active"}),
    EventType("bank_funding.scheduled", "A bank transfer is on its way.", _BANK_FUNDING),
    EventType("bank_funding.received", "A bank transfer has arrived.",
        _BANK_FUNDING, {"statusVersion": 2}),
    EventType("bank_funding.in_review",
        "The bank reviews a transfer, the account cannot be credited now, or the credit failed.",
        _BANK_FUNDING, {"statusVersion": 2}),
    EventType("bank_funding.submitted", "The bank transfer's stablecoins were sent.",
        _BANK_FUNDING, {"statusVersion": 3}),
    EventType("bank_funding.settled", "The bank transfer's stablecoins have arrived.",
        _BANK_FUNDING, {"statusVersion": 4}),
    EventType("bank_funding.refunded", "The bank transfer was sent back.",
        _BANK_FUNDING, {"statusVersion": 3}),
    EventType("bank_funding.failed", "The bank transfer never arrived.",
        _BANK_FUNDING, {"statusVersion": 2}),
    EventType("dispute.flagged", "A dispute was flagged.", _DISPUTE, {}, _IN_SESSION),
    EventType("dispute.resolved", "A dispute was resolved.", _DISPUTE, {}, _IN_SESSION),
    EventType(TEST, "A test event that you requested for one endpoint.", _TESTED),
    EventType(FAILING, "An endpoint fails; the other endpoints get this at most once an hour.",
        _ENDPOINT),
    EventType(RECOVERED, "An endpoint that failed works again; the other endpoints get this.",
        _RECOVERED_ENDPOINT, {"failureReason": None}),
)  # fmt: skip

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
        if self.payload.keys() != BY_NAME[self.name].fields.keys():
            raise ValueError(f"{self.name}: the payload has {sorted(self.payload)}")
        if len(msgspec.json.encode(self.payload)) > MAX_PAYLOAD_BYTES:
            raise ValueError(f"{self.name}: the payload is too large to deliver")


@attrs.frozen(kw_only=True, slots=False)
class Event(Record):
    """A row of the outbox. Its id is the `x-service-event-id` of every delivery.

    >>> event = shop.events.list(name="payment.succeeded").records[-1]
    >>> event.payload["paymentId"] == paid.id
    True
    """

    collection: ClassVar[Collection] = Collection(
        "events",
        columns={"name": str, "account_id": str, "created_at": int},
        indexes=(
            Index("by_created", order=("created_at",)),
            Index("newest", order=("created_at",), descending=True),
            Index("by_account", key=("account_id",), order=("created_at",), descending=True),
        ),
        schema=2,
    )

    name: str
    api_version: str
    created_at_ms: Instant
    payload: Mapping[str, Any]
    account_id: str | None = None
    external_user_id: str | None = None

    created_at: ClassVar[FieldView[datetime]] = instant_view("created_at_ms")
