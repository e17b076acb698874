"""Triggered events: any of the catalogue, with a realistic payload.

They are for testing a receiver. They are delivered like any other, and nothing else changes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs

from payments_core.accounts.record import Account
from payments_core.assets import (
    DEFAULT_CHAIN_ID,
    DEFAULT_SYMBOL,
    WATCH_LIST,
    Asset,
    asset_of,
)
from payments_core.engine.decision import Decision
from payments_core.engine.events import BY_NAME, FAILING, TEST, NewEvent
from payments_core.engine.idempotency.record import IdempotencyKey
from payments_core.engine.identifiers import IdSequence
from payments_core.engine.ports import Ports
from payments_core.errors import NotFound, ValidationFailed
from payments_core.payments.options.record import Option
from payments_core.payments.record import Payment
from payments_core.storage.port import Snapshot, Transaction, Where
from payments_core.storage.records import R
from payments_core.tenants.authorization import Authority
from payments_core.tenants.idempotency import once_per_key
from payments_core.webhooks.record import Endpoint

AMOUNT = "25.00"
AMOUNT_ATOMIC = 25_000_000
SENDER = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"


@attrs.frozen
class TriggeredEvent:
    """A triggered event."""

    event_id: str
    name: str
    payload: Mapping[str, Any]


@attrs.frozen(kw_only=True)
class _PaymentState:
    """The state of a Payment at an event; the shares are of its amount, in percent."""

    status: str
    received: int = 0
    settled: int = 0
    refunded: int = 0
    returned: int = 0
    labels: tuple[str, ...] = ()

    @property
    def excess(self) -> int:
        return max(0, self.received - 100)


_PAYMENT_STATES: Mapping[str, _PaymentState] = {
    "payment.created": _PaymentState(status="awaiting_payment"),
    "payment.processing": _PaymentState(status="processing"),
    "payment.underpaid": _PaymentState(
        status="awaiting_payment", received=60, labels=("underpaid",)
    ),
    "payment.accepted": _PaymentState(status="accepted", received=100),
    "payment.executing": _PaymentState(status="executing", received=100),
    "payment.succeeded": _PaymentState(status="succeeded", received=100, settled=100),
    "payment.action_required": _PaymentState(
        status="action_required", received=100, labels=("execution_failed",)
    ),
    "payment.overpaid": _PaymentState(status="accepted", received=120, labels=("overpaid",)),
    "payment.late": _PaymentState(status="expired", received=100, labels=("late",)),
    "payment.misdirected": _PaymentState(status="awaiting_payment", labels=("misdirected",)),
    "payment.reorged": _PaymentState(status="executing", labels=("reorged",)),
    "payment.expired": _PaymentState(status="expired"),
    "payment.cancelled": _PaymentState(status="cancelled"),
    "payment.reconciled": _PaymentState(status="accepted", received=100, labels=("late",)),
    "payment.refunded": _PaymentState(status="refunded", received=100, settled=100, refunded=100),
    "payment.failed": _PaymentState(status="failed", received=60, labels=("underpaid",)),
}

_STATUSES: Mapping[str, str] = {
    "account.capability_updated": "active",
    "bank_account.created": "pending",
    "bank_account.updated": "active",
    "deposit.misdirected": "rejected",
    "deposit.returned": "rejected",
}
"""The status, if it is not the last word of the event's name."""

_VERSIONS: Mapping[str, int] = {
    "refund.created": 1,
    "refund.succeeded": 3,
    "refund.failed": 3,
    "vault_funding.authorized": 2,
    "vault_funding.broadcast": 3,
    "vault_funding.confirmed": 4,
    "vault_funding.failed": 3,
    "deposit.detected": 1,
    "deposit.confirmed": 2,
    "deposit.settled": 3,
    "deposit.failed": 2,
    "deposit.misdirected": 2,
    "deposit.returned": 3,
    "bank_funding.scheduled": 1,
    "bank_funding.received": 2,
    "bank_funding.in_review": 2,
    "bank_funding.submitted": 3,
    "bank_funding.settled": 4,
    "bank_funding.refunded": 3,
    "bank_funding.failed": 2,
}
"""The status versions of resources that have their own lifecycle beside the Payment."""

_OF_WATCHED_TOKENS = ("payment.misdirected", "deposit.misdirected", "deposit.returned")
"""The events about tokens that arrive and do not count."""

_IMPOSSIBLE_INTENTS: Mapping[str, tuple[str, ...]] = {
    "dispute.flagged": ("send", "collect"),
    "dispute.resolved": ("send", "collect"),
    "refund.created": ("send",),
    "refund.succeeded": ("send",),
    "refund.failed": ("send",),
    "vault_funding.authorized": ("send",),
    "vault_funding.broadcast": ("send",),
    "vault_funding.confirmed": ("send",),
    "vault_funding.failed": ("send",),
    "payment.processing": ("send",),
    "payment.underpaid": ("send",),
    "payment.accepted": ("send",),
    "payment.overpaid": ("send",),
    "payment.late": ("send",),
    "payment.misdirected": ("send",),
    "payment.reorged": ("send",),
    "payment.expired": ("send",),
    "payment.refunded": ("send",),
}
"""The intents of Payments without such an event: a send has no receipts, only a receive
Payment has a session."""


@attrs.frozen(kw_only=True)
class _EventContext:
    """The subject of an event: existing resources, and made-up ids for missing ones."""

    name: str
    id_sequence: IdSequence
    account: Account | None
    payment: Payment | None
    option: Option | None
    webhook_id: str | None

    @property
    def payment_state(self) -> _PaymentState:
        return _PAYMENT_STATES.get(self.name, _PaymentState(status=self.name.partition(".")[2]))

    @property
    def arrived(self) -> Asset:
        """The Payment's asset; or for misdirected funds, a token of the watch list there."""
        asset = self.payment.asset if self.payment else asset_of(DEFAULT_CHAIN_ID, DEFAULT_SYMBOL)
        if self.name not in _OF_WATCHED_TOKENS:
            return asset
        return next(one for one in WATCH_LIST if one.chain_id == asset.chain_id)

    def amount(self, percent: int = 100) -> str:
        """A share of the Payment's amount, in the asset's smallest unit."""
        whole = self.payment.amount if self.payment else AMOUNT_ATOMIC
        return str(whole * percent // 100)

    @property
    def account_id(self) -> str | None:
        """The account's id; a real Payment to a wallet has no account."""
        if self.account is not None:
            return self.account.id
        return None if self.payment is not None else self.id_sequence.issue("acct")

    def status(self) -> str:
        """The status after the event."""
        if self.name == "payment.created" and self.payment and self.payment.intent != "receive":
            return "processing"  # it begins with the vault's funds reserved
        if self.name in ("account.created", "account.updated"):
            return self.account.status if self.account else "active"
        return _STATUSES.get(self.name, self.payment_state.status)


def _make_hash(it: _EventContext) -> str:
    """The hash of a made-up transaction."""
    return "0x" + hashlib.sha256(it.id_sequence.issue("tx").encode()).hexdigest()


_SAMPLES: Mapping[str, Callable[[_EventContext], Any]] = {
    "accountId": lambda it: it.account_id,
    "amount": lambda it: AMOUNT,
    "amountAtomic": lambda it: it.amount(),
    "assetSymbol": lambda it: it.arrived.symbol,
    "bankAccountId": lambda it: it.id_sequence.issue("bank_account"),
    "capability": lambda it: "us_bank_payout",
    "chainId": lambda it: it.arrived.chain_id,
    "createdBy": lambda it: it.payment.created_by if it.payment else "server",
    "deliveryId": lambda it: it.id_sequence.issue("delivery"),
    "depositId": lambda it: it.id_sequence.issue("deposit"),
    "destination": lambda it: SENDER,
    "excessAmountAtomic": lambda it: it.amount(it.payment_state.excess),
    "externalUserId": lambda it: it.account.external_user_id if it.account else "user-1",
    "failureReason": lambda it: "The endpoint answered 500." if it.name == FAILING else None,
    "from": lambda it: SENDER,
    "fundingOperationId": lambda it: (
        it.option.funding_operation_id if it.option else it.id_sequence.issue("pay_funding")
    ),
    "labels": lambda it: list(it.payment_state.labels),
    "note": lambda it: None,
    "onrampBankAccountId": lambda it: it.id_sequence.issue("onramp_account"),
    "optionId": lambda it: it.option.id if it.option else it.id_sequence.issue("pay_option"),
    "paymentId": lambda it: it.payment.id if it.payment else it.id_sequence.issue("payment"),
    "reason": lambda it: "wrong_token",
    "receiptId": lambda it: it.id_sequence.issue("receipt"),
    "receivedAmountAtomic": lambda it: it.amount(it.payment_state.received),
    "refundId": lambda it: (
        it.payment.refunding[-1]
        if it.payment and it.payment.refunding
        else it.id_sequence.issue("refund")
    ),
    "refundedAmountAtomic": lambda it: it.amount(it.payment_state.refunded),
    "returnedAmountAtomic": lambda it: it.amount(it.payment_state.returned),
    "sessionId": lambda it: it.payment.session_id if it.payment else it.id_sequence.issue("ses"),
    "settledAmountAtomic": lambda it: it.amount(it.payment_state.settled),
    "status": lambda it: it.status(),
    "statusVersion": lambda it: _VERSIONS.get(
        it.name, it.payment.status_version if it.payment else 1
    ),
    "tokenAddress": lambda it: it.arrived.address,
    "returnTransactionHash": _make_hash,
    "transactionHash": _make_hash,
    "transactionId": lambda it: it.id_sequence.issue("bank_txn"),
    "webhookId": lambda it: it.webhook_id or it.id_sequence.issue("webhook"),
}
"""A sample of every field that a payload of the catalogue may have."""


class EventTrigger:
    """Triggers events in the caller's environment."""

    def __init__(self, ports: Ports) -> None:
        self._storage = ports.storage
        self._committer = ports.committer

    @once_per_key
    def trigger(
        self,
        authority: Authority,
        name: str,
        *,
        account_id: str | None = None,
        payment_id: str | None = None,
        idempotency_key: IdempotencyKey = None,
    ) -> TriggeredEvent:
        """The event, committed. It is about the account and Payment given, or else the newest.

        If it is about a Payment, the account is by default the Payment's; a
        Payment of an intent without such an event is skipped, or refused if it is named.

        Raises NotFound, ValidationFailed.
        """
        if name not in BY_NAME:
            raise ValidationFailed.at("name", "is not an event of the catalog")
        id_sequence = self._committer.id_sequence()
        event_id = id_sequence.issue("evt")  # the first that the commit draws, for its only event
        scene = self._storage.read(
            authority.partition,
            lambda snapshot: _load_context(snapshot, id_sequence, name, account_id, payment_id),
        )
        account = scene.account
        payload = {field: _SAMPLES[field](scene) for field in BY_NAME[name].fields}
        new_event = NewEvent(
            name,
            payload,
            authority.api_version,
            account.id if account else None,
            account.external_user_id if account else None,
        )
        done = TriggeredEvent(event_id, name, payload)

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[TriggeredEvent]:
            return Decision(done, events=(new_event,))

        return self._committer.commit(
            authority, decide, idempotent=idempotency_key, id_sequence=id_sequence
        )


def _load_context(
    snapshot: Snapshot,
    id_sequence: IdSequence,
    name: str,
    account_id: str | None,
    payment_id: str | None,
) -> _EventContext:
    payment = option = None
    if "paymentId" in BY_NAME[name].fields or "sessionId" in BY_NAME[name].fields:
        payment = _find_payment(snapshot, name, account_id, payment_id)
    elif payment_id is not None:
        raise ValidationFailed.at("paymentId", "is not a field of this event")
    if payment is not None and payment.option_ids:
        option = snapshot.get(Option, payment.selected_option_id or payment.option_ids[-1])
    account = None
    if account_id is not None or payment is None:
        account = _find_account(snapshot, account_id)
    elif payment.account_id is not None:
        account = snapshot.get(Account, payment.account_id)
    endpoints: Sequence[Endpoint] = ()
    if name == TEST:  # the endpoint of a health event is made up, or it would not receive the event
        endpoints = snapshot.find(Endpoint, "by_status", ("active",), limit=100).records
    return _EventContext(
        name=name,
        id_sequence=id_sequence,
        account=account,
        payment=payment,
        option=option,
        webhook_id=endpoints[-1].id if endpoints else None,
    )


def _find_payment(
    snapshot: Snapshot, name: str, account_id: str | None, payment_id: str | None
) -> Payment | None:
    """The named Payment, or the account's newest, or the newest of all."""
    never = _IMPOSSIBLE_INTENTS.get(name, ())
    if payment_id is None:
        where = tuple(Where("intent", "!=", intent) for intent in never)
        if account_id is None:
            return _find_newest(snapshot, Payment, "by_created", (), where)
        return _find_newest(snapshot, Payment, "by_account", (account_id,), where)
    payment = snapshot.get(Payment, payment_id)
    if payment is None:
        raise NotFound("payment")
    if payment.intent in never:
        raise ValidationFailed.at(
            "paymentId", f"is a {payment.intent} Payment, which does not have this event"
        )
    return payment


def _find_account(snapshot: Snapshot, account_id: str | None) -> Account | None:
    """The named account, or the newest."""
    if account_id is None:
        return _find_newest(snapshot, Account, "by_created")
    account = snapshot.get(Account, account_id)
    if account is None:
        raise NotFound("account")
    return account


def _find_newest(
    snapshot: Snapshot,
    kind: type[R],
    index: str,
    key: tuple[str, ...] = (),
    where: tuple[Where, ...] = (),
) -> R | None:
    """The first record of an index, which is the newest."""
    page = snapshot.find(kind, index, key, where=where, limit=1)
    while not page.records and page.next is not None:
        page = snapshot.find(kind, index, key, where=where, after=page.next, limit=1)
    return page.records[0] if page.records else None
