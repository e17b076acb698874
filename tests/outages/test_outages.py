"""A short storm over a deployment of many processes, and that its laws would find what is wrong.

`make outages` is the long one, with a standby and a failover.
"""

from __future__ import annotations

import copy
import json
import math
import os
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import pytest

from payments_core.accounts.record import Account
from payments_core.chains.outbox.record import OutboundTransfer
from payments_core.chains.simulated.records import SimulatedBalance, SimulatedSender
from payments_core.deposits.record import Deposit
from payments_core.engine.events import Event
from payments_core.engine.idempotency.record import StoredResponse
from payments_core.payments.funding.record import FundingOperation
from payments_core.payments.journal.record import JournalEntry
from payments_core.payments.options.record import PaymentOption
from payments_core.payments.receipts.record import Receipt
from payments_core.payments.record import Payment
from payments_core.storage.jobs import NEVER, Job
from payments_core.storage.port import SIMULATED
from payments_core.storage.records import Record
from payments_core.tenants.record import ClientSession
from payments_core.webhooks.record import Delivery
from payments_core_http.cli.api_client import ApiResponse
from tests.outages import laws, logs
from tests.outages.found import Found
from tests.outages.laws import Evidence
from tests.outages.running import Outcome, Plan, in_words, run
from tests.servers import NoPostgres
from tests.servers.programs import chosen_major, postgres_programs
from tests.service.model.mirror import Mirror

pytestmark = [pytest.mark.slow, pytest.mark.postgres, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    try:
        postgres_programs()
    except NoPostgres as reason:
        if chosen_major():
            raise
        pytest.skip(str(reason))
    seed = int(os.environ.get("PAYMENTS_OUTAGES_SEED") or random.getrandbits(32))
    print(f"PAYMENTS_OUTAGES_SEED={seed}")
    plan = Plan(seed=seed, calm_s=1, storm_s=9, settle_s=4, workers=2, shoppers=5, replicated=False)
    return run(plan, tmp_path_factory.mktemp("outages"))


def test_kills_and_a_restart_of_the_database_lose_nothing_and_double_nothing(
    outcome: Outcome,
) -> None:
    print(in_words(outcome))
    assert list(outcome.faults) == []
    ends = set(outcome.evidence.books.ends.values())
    assert {"succeeded", "expired"} <= ends  # it was a storm over something
    assert outcome.evidence.received
    assert any(answered.tries > 1 for answered in outcome.evidence.answered)


# The laws find what was tampered with.

Tamper = Callable[[Evidence], Evidence]


def test_the_laws_find_nothing_in_what_nobody_tampered_with(outcome: Outcome) -> None:
    assert list(laws.broken(attrs.evolve(outcome.evidence, found=copied(outcome.evidence)))) == []


def copied(evidence: Evidence) -> Found:
    """The same records, to be tampered with."""
    found = copy.copy(evidence.found)
    found.mirror = Mirror()
    for partition, kinds in evidence.found.mirror.records.items():
        for kind, records in kinds.items():
            found.mirror.records[partition][kind] = dict(records)
    return found


def changed(
    kind: type[Record], change: Callable[[Any], Any], partition: str | None = None
) -> Tamper:
    """The last record of a kind is another one, or gone."""

    def tamper(evidence: Evidence) -> Evidence:
        found = copied(evidence)
        records = found.mirror.records[partition or found.environment_id][kind]
        id, record = records.popitem()
        other = change(record)
        if other is not None:
            records[id] = other
        return attrs.evolve(evidence, found=found)

    return tamper


def without(kind: type[Record]) -> Tamper:
    """The last record of a kind is lost."""
    return changed(kind, lambda record: None)


def twice(kind: type[Record]) -> Tamper:
    """The last record of a kind is there once more, under another id."""

    def tamper(evidence: Evidence) -> Evidence:
        found = copied(evidence)
        records = found.mirror.records[found.environment_id][kind]
        records["another"] = attrs.evolve(next(reversed(records.values())), id="another")
        return attrs.evolve(evidence, found=found)

    return tamper


def change_answers(what: str, **changes: Any) -> Tamper:
    """The last answer of a sort was given once more, differently."""

    def tamper(evidence: Evidence) -> Evidence:
        answered = next(
            answered for answered in reversed(evidence.answered) if answered.what == what
        )
        answer = json.dumps({**answered.document, **changes.pop("document", {})})
        other = attrs.evolve(answered, answer=answer, **changes)
        return attrs.evolve(evidence, answered=[*evidence.answered, other])

    return tamper


def replayed_otherwise(change: Callable[[ApiResponse], ApiResponse | None]) -> Tamper:
    """The repeat of a request got another answer, or none."""

    def tamper(evidence: Evidence) -> Evidence:
        key, answer = next(iter(evidence.replays.items()))
        replays = {**evidence.replays, key: change(answer)}
        return attrs.evolve(
            evidence, replays={key: answer for key, answer in replays.items() if answer is not None}
        )

    return tamper


def received_otherwise(change: Callable[[dict[str, Any]], list[dict[str, Any]]]) -> Tamper:
    """All deliveries of one event were others."""

    def tamper(evidence: Evidence) -> Evidence:
        event = evidence.received[0]["event"]
        received: list[Any] = []
        for one in evidence.received:
            received += change(dict(one)) if one.get("event") == event else [one]
        return attrs.evolve(evidence, received=received)

    return tamper


def richer(evidence: Evidence) -> Evidence:
    """The API says that somebody has more than he has."""
    place, (total, reserved) = next(iter(evidence.balances.items()))
    return attrs.evolve(evidence, balances={**evidence.balances, place: (total + 1, reserved)})


def to(**changes: Any) -> Callable[[Any], Any]:
    """Some fields of a record are others."""
    return lambda record: attrs.evolve(record, **changes)


TAMPERINGS: tuple[tuple[Callable[..., Any], Tamper], ...] = (
    (laws.what_was_answered_is_there, without(Account)),
    (laws.what_was_answered_is_there, without(PaymentOption)),
    (laws.what_was_answered_is_there, without(ClientSession)),
    (laws.what_was_answered_is_there, changed(Payment, to(status_version=0))),
    (laws.what_was_answered_is_there, changed(Payment, to(amount_atomic=1))),
    (laws.what_was_answered_is_there, changed(Payment, to(timeline=()))),
    (
        laws.what_was_answered_is_there,
        change_answers("pay", document={"transactionHash": "0x00"}),
    ),
    (laws.operations_that_were_authorized_are_there, without(FundingOperation)),
    (
        laws.no_read_is_older_than_an_answer,
        change_answers("look", document={"statusVersion": 0}, sent=math.inf),
    ),
    (laws.repeats_are_answered_the_same, replayed_otherwise(lambda answer: None)),
    (
        laws.repeats_are_answered_the_same,
        replayed_otherwise(lambda answer: attrs.evolve(answer, body=b"{}")),
    ),
    (
        laws.repeats_are_answered_the_same,
        replayed_otherwise(lambda answer: attrs.evolve(answer, headers={})),
    ),
    (laws.every_resource_has_one_request, twice(Payment)),
    (laws.every_resource_has_one_request, twice(PaymentOption)),
    (laws.every_resource_has_one_request, without(StoredResponse)),
    (laws.every_resource_has_one_request, change_answers("receive", key="another")),
    (laws.flows_have_ended, changed(Payment, to(status="failed"))),
    (laws.flows_have_ended, without(Deposit)),
    (
        laws.everybody_has_what_the_flows_say,
        changed(
            SimulatedBalance,
            lambda record: to(total_atomic=record.total_atomic + 1)(record),
            SIMULATED,
        ),
    ),
    (laws.the_api_says_what_the_flows_say, richer),
    (laws.slots_have_no_gap_and_one_transfer_each, without(OutboundTransfer)),
    (
        laws.slots_have_no_gap_and_one_transfer_each,
        changed(OutboundTransfer, to(transaction_hash="0x00")),
    ),
    (
        laws.slots_have_no_gap_and_one_transfer_each,
        changed(SimulatedSender, to(next_slot=0), SIMULATED),
    ),
    (laws.each_intent_has_one_transfer, twice(OutboundTransfer)),
    (laws.every_event_was_delivered, twice(Event)),
    (laws.every_event_was_delivered, without(Event)),
    (laws.every_event_was_delivered, received_otherwise(lambda one: [])),
    (laws.every_event_was_delivered, received_otherwise(lambda one: [one, {**one, "body": ""}])),
    (laws.every_event_was_delivered, received_otherwise(lambda one: [one, {"refused": "stale"}])),
    (laws.every_event_was_delivered, changed(Delivery, to(status="abandoned"))),
    (laws.no_job_is_parked, changed(Job, to(lease_until=NEVER))),
    (laws.the_model_agrees, without(JournalEntry)),
    (laws.the_model_agrees, without(Event)),
    (laws.the_model_agrees, without(Receipt)),
)


@pytest.mark.parametrize("case", TAMPERINGS, ids=lambda case: case[0].__name__)
def test_a_law_finds_what_is_wrong(
    case: tuple[Callable[..., Any], Tamper], outcome: Outcome
) -> None:
    law, tamper = case
    assert list(law(tamper(outcome.evidence)))


@pytest.mark.parametrize(
    "line",
    [
        '{"level": "CRITICAL", "message": "ALARM: job job_1 is parked", "alarm": true}',
        '{"level": "ERROR", "message": "a job failed", "exception": "Traceback\\nKeyError: 1"}',
        '{"level": "ERROR", "message": "it went wrong"}',
        "Traceback (most recent call last):",
    ],
)
def test_a_log_with_an_error_that_no_outage_explains_is_found(line: str, tmp_path: Path) -> None:
    log = tmp_path / "worker.log"
    explained = '{"level": "ERROR", "message": "it could not look: StorageUnavailable"}'
    log.write_text(f"{explained}\n{logs.REFUSED_START}: it is away.\n")
    assert list(logs.alarming([log])) == []
    assert logs.refused_starts(log) == 1
    log.write_text(f"{explained}\n{line}\n")
    assert len(list(logs.alarming([log]))) == 1
