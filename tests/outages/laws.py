"""What must be true when all is over, looked at as an enemy would.

Each law is given the evidence and yields what is wrong. `evidence.answered` is what the partner was
answered, `found` what lies in the storage, `received` what the webhook receiver has verified, and
`balances` what the API says that each account has on each chain, and how much of it is reserved.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import attrs

from payments_core.accounts.record import Account
from payments_core.chains.outbox.record import OutboundTransfer, Sender
from payments_core.chains.simulated.records import (
    SimulatedBalance,
    SimulatedSender,
    SimulatedTransaction,
)
from payments_core.chains.simulated.transfers import FAUCET
from payments_core.clock import format_iso
from payments_core.deposits.record import Deposit, DepositAddress
from payments_core.engine.events import FAILING, RECOVERED, Event
from payments_core.engine.idempotency.record import StoredResponse
from payments_core.payments.funding.record import FundingOperation
from payments_core.payments.options.record import PaymentOption
from payments_core.payments.record import Payment
from payments_core.payments.refunds.record import Refund
from payments_core.storage.jobs import Job, is_parked
from payments_core.storage.records import Record
from payments_core.tenants.record import ClientSession
from payments_core.webhooks.record import Delivery
from payments_core_http.cli.api_client import ApiResponse
from tests.outages.books import Books
from tests.outages.found import Found
from tests.outages.partner import AnsweredRequest
from tests.service.model.index import Index
from tests.service.model.invariants import (
    every_change_is_told,
    journals_balance,
    no_log_counts_twice,
    no_refund_exceeds_what_is_there,
    nothing_is_below_zero,
    public_options_say_what_came,
    timelines_say_what_happened,
    what_was_received_is_somewhere,
)
from tests.service.model.onchain import ENDINGS
from tests.service.model.spending import no_funds_are_reserved_twice

Wrong = Iterator[str]


@attrs.frozen
class Evidence:
    """All that is known."""

    answered: Sequence[AnsweredRequest]
    books: Books
    replays: Mapping[str, ApiResponse]
    found: Found
    received: Sequence[Mapping[str, Any]]
    balances: Mapping[tuple[str, int], tuple[int, int]]


# What was answered is so.


def what_was_answered_is_there(evidence: Evidence) -> Wrong:
    """Every answered write is stored, in the state of the answer or a later one."""
    for answered in evidence.answered:
        kinds = _KINDS_OF.get(answered.what)
        if kinds is not None:
            document = _resource(answered)
            found = (evidence.found.all(kind).get(document["id"]) for kind in kinds)
            stored = next(filter(None, found), None)
            if stored is None:
                yield f"{document['id']} was answered ({answered.what}) and is not stored"
            else:
                yield from _later(document, stored)
        if answered.what in ("fund", "pay", "deposit"):
            yield from _transferred(evidence, answered.document)


_OF_OPTIONS = ("option", "direct", "select", "authorize")
_KINDS_OF: Mapping[str, tuple[type[Record], ...]] = {
    "account": (Account,),
    "address": (DepositAddress,),
    "session": (ClientSession,),
    "receive": (Payment,),
    "send": (Payment,),
    "cancel": (Payment,),
    "look": (Payment,),
    "refund": (Refund,),
    **dict.fromkeys(_OF_OPTIONS, (PaymentOption,)),
}


def _resource(answered: AnsweredRequest) -> dict[str, Any]:
    """What was answered, with its id."""
    document: dict[str, Any] = answered.document
    if answered.what in _OF_OPTIONS:
        document = document["option"]
    return document if "id" in document else {**document, "id": document["clientSessionId"]}


def _later(document: Mapping[str, Any], stored: Any) -> Wrong:
    """What is stored has come from what was answered."""
    version = document.get("statusVersion", 0)
    if version > getattr(stored, "status_version", version):
        yield f"{stored.id} was answered in version {version} and is in {stored.status_version}"
    amount = str(getattr(stored, "amount_atomic", ""))
    if (answered_amount := document.get("amountAtomic", amount)) != amount:
        yield f"{stored.id} was answered with {answered_amount} and has {amount}"
    answered = [(line["status"], line["at"]) for line in document.get("timeline", ())]
    if (
        answered
        and answered
        != [(line.status, format_iso(line.at_ms)) for line in stored.timeline][: len(answered)]
    ):
        yield f"{stored.id} had the timeline {answered}, and now another"


def _transferred(evidence: Evidence, document: Mapping[str, Any]) -> Wrong:
    id = f"{document['chainId']}:{document['transactionHash']}"
    row = evidence.found.simulated(SimulatedTransaction).get(id)
    wanted = document.get("address") or document.get("to"), int(document["amountAtomic"])
    if row is None or [(log.recipient, log.amount_atomic) for log in row.logs] != [wanted]:
        yield f"{id} was answered, and the chain has {row}"


def operations_that_were_authorized_are_there(evidence: Evidence) -> Wrong:
    """An answered authorization has its funding operation, not in an earlier state."""
    for answered in evidence.answered:
        if answered.what == "authorize":
            operation = answered.document["fundingOperation"]
            stored = evidence.found.all(FundingOperation).get(operation["id"])
            if stored is None:
                yield f"{operation['id']} was answered and is not stored"
            elif operation.get("statusVersion", 0) > stored.status_version:
                yield f"{stored.id} is in an earlier state than was answered"


def no_read_is_older_than_an_answer(evidence: Evidence) -> Wrong:
    """A read that was sent after an answer never shows an earlier state than that answer."""
    versions_of = defaultdict(list)
    for answered in evidence.answered:
        if answered.what in ("receive", "send", "cancel", "look"):
            document = answered.document
            versions_of[document["id"]].append((answered, document["statusVersion"]))
    for id, all_answered in versions_of.items():
        for answered, version in all_answered:
            known = max((v for other, v in all_answered if other.ended < answered.sent), default=0)
            if version < known:
                yield f"{id} was shown in version {version} after version {known}"


def repeats_are_answered_the_same(evidence: Evidence) -> Wrong:
    """Every key, sent again when all is calm, has the first answer, and says that it is that."""
    for answered in evidence.answered:
        if answered.key is None or answered.what == "clock":  # which was moved after the repeats
            continue
        again = evidence.replays.get(answered.key)
        if again is None:
            yield f"{answered.key} was not sent again"
        elif (again.status, again.body.decode()) != (answered.status, answered.answer):
            yield f"{answered.key} was answered {answered.status}, and again {again.status}"
        elif again.headers.get("idempotent-replayed") != "true":
            yield f"{answered.key} was not replayed"


# Nothing twice.


def every_resource_has_one_request(evidence: Evidence) -> Wrong:
    """What is stored was asked for once: each under one key, and none under no key."""
    for kind, whats in _MADE_BY.items():
        made = Counter(
            _resource(answered)["id"] for answered in evidence.answered if answered.what in whats
        )
        yield from (f"{id} was the answer to {n} keys" for id, n in made.items() if n > 1)
        stored = evidence.found.all(kind).keys()
        yield from (
            f"{id} is stored, and no answer names it" for id in sorted(stored - made.keys())
        )
    keys = {answered.key for answered in evidence.answered if answered.key is not None}
    answers = len(evidence.found.all(StoredResponse))
    if answers != len(keys):
        yield f"{len(keys)} keys were answered, and {answers} answers are stored"


_MADE_BY: Mapping[type[Record], tuple[str, ...]] = {
    Account: ("account",),
    Payment: ("receive", "send"),
    Refund: ("refund",),
    PaymentOption: ("option", "direct"),
    ClientSession: ("session",),
}


def flows_have_ended(evidence: Evidence) -> Wrong:
    """What was paid succeeded, what was cancelled is, what was left has expired; refunds and
    deposits went through."""
    for id, payment in evidence.found.all(Payment).items():
        if payment.status != evidence.books.ends.get(id):
            yield f"{id} is {payment.status}, and should be {evidence.books.ends.get(id)}"
    for refund in evidence.found.all(Refund).values():
        if refund.status != "succeeded":
            yield f"{refund.id} is {refund.status}"
    settled = [d for d in evidence.found.all(Deposit).values() if d.status == "settled"]
    if sorted(d.transaction_hash for d in settled) != sorted(evidence.books.deposits):
        yield f"{len(evidence.books.deposits)} deposits were made, and {len(settled)} settled"


def everybody_has_what_the_flows_say(evidence: Evidence) -> Wrong:
    """Each holder of tokens has exactly what the answered requests give him, and what all have
    together is what the faucet gave."""
    there: dict[tuple[int, str, str], int] = {}
    for id, balance in evidence.found.simulated(SimulatedBalance).items():
        chain_id, token, address = id.split(":")
        if address == FAUCET:
            given = evidence.books.minted.get((int(chain_id), token), 0)
            if given != -balance.total_atomic:
                yield f"{id} gave {-balance.total_atomic}, and {given} was asked for"
        elif balance.total_atomic:
            there[int(chain_id), token, address] = balance.total_atomic
    wanted = evidence.books.holders
    for holder in sorted(there.keys() | wanted.keys()):
        if there.get(holder, 0) != wanted.get(holder, 0):
            yield f"{holder} has {there.get(holder, 0)}, and should have {wanted.get(holder, 0)}"


def the_api_says_what_the_flows_say(evidence: Evidence) -> Wrong:
    """Each account's balances are those of its vaults, and nothing is reserved."""
    for answered in evidence.answered:
        if answered.what == "account":
            for vault in answered.document["vaults"]:
                place = answered.document["id"], vault["chainId"]
                wanted = evidence.books.on_chain(vault["chainId"], vault["address"]), 0
                if evidence.balances.get(place) != wanted:
                    yield f"{place} has {evidence.balances.get(place)}, and should have {wanted}"


def slots_have_no_gap_and_one_transfer_each(evidence: Evidence) -> Wrong:
    """A sender's slots are filled from 0 on, each by one transfer, which is in the chain once."""
    sent: dict[str, list[OutboundTransfer]] = defaultdict(list)
    for outgoing in evidence.found.all(OutboundTransfer).values():
        sent[str(outgoing.sender_id)].append(outgoing)
    on_chain: dict[str, list[tuple[int | None, str]]] = defaultdict(list)
    for row in evidence.found.simulated(SimulatedTransaction).values():
        if row.sender is not None:
            on_chain[f"{row.chain_id}:{row.sender}"].append((row.slot, row.hash))
    for sender in evidence.found.all(Sender).values():
        ours = sorted((o.slot, o.transaction_hash) for o in sent.pop(sender.id, []))
        if [slot for slot, _ in ours] != list(range(sender.next_slot)):
            yield f"{sender.id} has the slots {[slot for slot, _ in ours]} of {sender.next_slot}"
        if ours != sorted(on_chain.pop(sender.id, [])):
            yield f"{sender.id} did on the chain what it did not store, or the other way round"
        used = evidence.found.simulated(SimulatedSender).get(sender.id)
        if used is None or used.next_slot != sender.next_slot:
            yield f"{sender.id} has used {used} of {sender.next_slot} slots"
    yield from (f"{id} sent and is not a sender" for id in (*sent, *on_chain))


def each_intent_has_one_transfer(evidence: Evidence) -> Wrong:
    """One transfer of ours for each funding, release, refund and sweep."""
    purposes = Counter(
        (o.purpose, o.owner_id) for o in evidence.found.all(OutboundTransfer).values()
    )
    yield from (f"{purpose} has {n} transfers" for purpose, n in purposes.items() if n > 1)


# Events and jobs.


def every_event_was_delivered(evidence: Evidence) -> Wrong:
    """At least once, all with one body; and none that is not stored."""
    events = evidence.found.all(Event)
    seen: dict[str, tuple[Any, Any]] = {}
    for one in evidence.received:
        if "refused" in one:
            yield f"a delivery was refused: {one['refused']}"
            continue
        sent = (one["delivery"], one["body"])
        if seen.setdefault(one["event"], sent) != sent:
            yield f"{one['event']} came in two forms"
    # The news that an endpoint fails are for the others, and there is one.
    wanted = {id for id, event in events.items() if event.name not in (FAILING, RECOVERED)}
    yield from (f"{id} was never delivered" for id in sorted(wanted - seen.keys()))
    yield from (f"{id} came and is not stored" for id in sorted(seen.keys() - events.keys()))
    for delivery in evidence.found.all(Delivery).values():
        if delivery.status != "delivered":
            yield f"{delivery.id} is {delivery.status}"


def no_job_is_parked(evidence: Evidence) -> Wrong:
    """None was given up."""
    for records in evidence.found.mirror.records.values():
        for job in records[Job].values():
            if is_parked(job):
                yield f"{job.id} ({job.kind} of {job.subject}) is parked"


# The model's.


def the_model_agrees(evidence: Evidence) -> Wrong:
    """The laws that hold of every commit hold of all records together, as of one commit; and so
    do those of the end."""
    found, index = evidence.found, Index()
    whole = found.whole()
    index.keep_up(whole)
    for law in OF_COMMITS:
        for detail in law(found, index, whole):  # type: ignore[arg-type]
            yield f"{law.__name__}: {detail}"
    chain_index = found.chain_index()
    for ending in ENDINGS:
        for detail in ending(found, chain_index):  # type: ignore[arg-type]
            yield f"{ending.__name__}: {detail}"


OF_COMMITS = (
    journals_balance,
    what_was_received_is_somewhere,
    nothing_is_below_zero,
    no_refund_exceeds_what_is_there,
    no_log_counts_twice,
    no_funds_are_reserved_twice,
    every_change_is_told,
    public_options_say_what_came,
    timelines_say_what_happened,
)
LAWS: tuple[Callable[[Evidence], Wrong], ...] = (
    what_was_answered_is_there,
    operations_that_were_authorized_are_there,
    no_read_is_older_than_an_answer,
    repeats_are_answered_the_same,
    every_resource_has_one_request,
    flows_have_ended,
    everybody_has_what_the_flows_say,
    the_api_says_what_the_flows_say,
    slots_have_no_gap_and_one_transfer_each,
    each_intent_has_one_transfer,
    every_event_was_delivered,
    no_job_is_parked,
    the_model_agrees,
)


def broken(evidence: Evidence) -> Iterator[str]:
    """What is wrong, with the name of its law."""
    for law in LAWS:
        try:
            for detail in law(evidence):
                yield f"{law.__name__}: {detail}"
        except (LookupError, AssertionError) as error:  # what it rests on is not there
            yield f"{law.__name__}: cannot be judged: {error!r}"
