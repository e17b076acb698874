"""Triggered events: any of the catalogue, with a realistic payload.

They are for testing a receiver. They are delivered like any other, and nothing else changes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, get_args

import attrs

from payments_core.accounts.record import Account
from payments_core.engine.decision import Decision
from payments_core.engine.events import BY_NAME, TEST, EventType, NewEvent
from payments_core.engine.idempotency.record import IdempotencyKey
from payments_core.engine.identifiers import IdSequence
from payments_core.engine.ports import Ports
from payments_core.errors import NotFound, ValidationFailed
from payments_core.networks import Networks
from payments_core.payments.events import identify
from payments_core.payments.options.record import PaymentOption
from payments_core.payments.record import Intent, Payment
from payments_core.storage.port import Snapshot, Transaction, Where
from payments_core.storage.records import R
from payments_core.tenants.authorization import Authority
from payments_core.tenants.idempotency import once_per_key
from payments_core.webhooks.record import Endpoint

_SAMPLE_AMOUNT = 25_000_000
"""The amount of the Payment that the samples of the catalogue are about."""


@attrs.frozen
class TriggeredEvent:
    """A triggered event."""

    event_id: str
    name: str
    payload: Mapping[str, Any]


@attrs.frozen(kw_only=True)
class _Subject:
    """The existing resources that an event is about, as far as there are any."""

    account: Account | None
    payment: Payment | None
    option: PaymentOption | None
    webhook_id: str | None


class EventTrigger:
    """Triggers events in the caller's environment."""

    def __init__(self, ports: Ports) -> None:
        self._storage = ports.storage
        self._networks = ports.networks
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
        event = BY_NAME[name]
        id_sequence = self._committer.id_sequence()
        event_id = id_sequence.issue("evt")  # the first that the commit draws, for its only event
        subject = self._storage.read(
            authority.partition,
            lambda snapshot: _load_subject(snapshot, event, account_id, payment_id),
        )
        account = subject.account
        payload = _make_payload(event, subject, id_sequence, self._networks)
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


def _make_payload(
    event: EventType, subject: _Subject, id_sequence: IdSequence, networks: Networks
) -> dict[str, Any]:
    """The catalogue's sample, with what is known of the subject in place of made-up values."""
    payload = event.make_payload(id_sequence.issue)
    if subject.payment is not None:
        payload = _scale(payload, subject.payment.amount_atomic)
    known = _collect_facts(event, subject, networks)
    return {field: known.get(field, value) for field, value in payload.items()}


def _scale(payload: Mapping[str, Any], amount: int) -> dict[str, Any]:
    """The payload with its amounts in proportion to that of a Payment."""
    return {
        field: str(int(value) * amount // _SAMPLE_AMOUNT) if field.endswith("Atomic") else value
        for field, value in payload.items()
    }


def _collect_facts(event: EventType, subject: _Subject, networks: Networks) -> dict[str, Any]:
    """The values of payload fields that the resources know."""
    facts: dict[str, Any] = {}
    if payment := subject.payment:
        facts |= {**identify(payment), "sessionId": payment.session_id}
        if not event.name.startswith("payment."):
            del facts["statusVersion"]  # the event's resource has its own
        if payment.refunding:
            facts["refundId"] = payment.refunding[-1]
        if event.name == "payment.created" and payment.intent != "receive":
            facts["status"] = "processing"  # it begins with the vault's funds reserved
        if "tokenAddress" in event.fields:
            facts |= _find_watched_token(payment.chain_id, networks)
    if (option := subject.option) and option.funding_operation_id is not None:
        facts |= {"optionId": option.id, "fundingOperationId": option.funding_operation_id}
    if account := subject.account:
        facts |= {"accountId": account.id, "externalUserId": account.external_user_id}
        if event.name in ("account.created", "account.updated"):
            facts["status"] = account.status
    if subject.webhook_id is not None:
        facts["webhookId"] = subject.webhook_id
    return facts


def _find_watched_token(chain_id: int, networks: Networks) -> dict[str, Any]:
    """A token that does not count on that chain; the event's sample, if none is known."""
    network = networks.get(chain_id)
    if network is None or not network.watch_list:
        return {}
    token = network.watch_list[0]
    return {"assetSymbol": token.symbol, "tokenAddress": token.address}


def _load_subject(
    snapshot: Snapshot, event: EventType, account_id: str | None, payment_id: str | None
) -> _Subject:
    payment = option = None
    if "paymentId" in event.fields:
        payment = _find_payment(snapshot, event, account_id, payment_id)
    elif payment_id is not None:
        raise ValidationFailed.at("payment_id", "is not a field of this event")
    if payment is not None and payment.option_ids:
        option = snapshot.get(PaymentOption, payment.selected_option_id or payment.option_ids[-1])
    account = None
    if account_id is not None or payment is None:
        account = _find_account(snapshot, account_id)
    elif payment.account_id is not None:
        account = snapshot.get(Account, payment.account_id)
    endpoints: Sequence[Endpoint] = ()
    if event.name == TEST:  # that of a health event is made up, or it would not receive the event
        endpoints = snapshot.find(Endpoint, "by_status", ("active",), limit=100).records
    return _Subject(
        account=account,
        payment=payment,
        option=option,
        webhook_id=endpoints[-1].id if endpoints else None,
    )


def _find_payment(
    snapshot: Snapshot, event: EventType, account_id: str | None, payment_id: str | None
) -> Payment | None:
    """The named Payment, or the account's newest, or the newest of all."""
    if payment_id is None:
        never = [intent for intent in get_args(Intent) if intent not in event.intents]
        where = tuple(Where("intent", "!=", intent) for intent in never)
        if account_id is None:
            return _find_newest(snapshot, Payment, "by_created", (), where)
        return _find_newest(snapshot, Payment, "by_account", (account_id,), where)
    payment = snapshot.get(Payment, payment_id)
    if payment is None:
        raise NotFound("payment")
    if payment.intent not in event.intents:
        raise ValidationFailed.at(
            "payment_id", f"is a {payment.intent} Payment, which does not have this event"
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
