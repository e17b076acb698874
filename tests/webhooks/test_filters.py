"""Filters of endpoints: what each rule means, what is refused, and where they are evaluated."""

from __future__ import annotations

import json
from typing import Any

import pytest

from payments_core.clock import DAY
from payments_core.contracts.versions import Versions
from payments_core.engine.decision import Decision, WorkerAuthority
from payments_core.engine.events import BY_NAME, CATALOGUE, NewEvent
from payments_core.errors import ResourceConflict, ValidationFailed
from payments_core.webhooks.endpoint_fields import EndpointChanges
from payments_core.webhooks.envelopes import SUBJECTS
from payments_core.webhooks.filters import (
    EventFilter,
    check_filters,
    parse_rule,
    satisfies,
    write_rule,
)
from payments_core.webhooks.record import Endpoint
from tests.webhooks.replay_bench import ReplayBench
from tests.webhooks.webhook_bench import HOOK

DATE = "2026-09-09"
LARGE = EventFilter("payload.amountAtomic", ">=", "100000000")
EVENT = {
    "id": "evt_1",
    "name": "payment.succeeded",
    "createdAt": "2026-09-09T12:00:00.500Z",
    "payload": {
        "amountAtomic": "9" * 30,
        "receivedAmountAtomic": "0",
        "chainId": 8453,
        "assetSymbol": "USDC",
        "accountId": None,
        "reference": "Doe, Jane",
        "confirmations": 0,
        "amount": "25.10",
        "labels": ["late", "overpaid"],
        "metadata": {
            "tier": "gold",
            "count": 12,
            "vip": True,
            "price": "9.90",
            "in": {"x": "y"},
            "note": '"quoted" ',
            "my key": 1,
            "order.id": "o-1",
            "order": {"id": None},
            "a.b": {"c.d": "deep"},
            "weight": 1.5,
        },
    },
}


def rule(text: str) -> EventFilter:
    document = parse_rule(text)
    return EventFilter(**{**document, "values": tuple(document.get("values", ()))})


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("name = payment.succeeded", True),
        ("name != payment.succeeded", False),
        ("name in payment.created, payment.succeeded", True),
        (f"payload.amountAtomic = {'9' * 30}", True),
        (f"payload.amountAtomic > {'9' * 29}8", True),
        (f"payload.amountAtomic > {'9' * 30}", False),
        ("payload.amountAtomic >= 10", True),
        ("payload.amountAtomic < 10", False),
        (f"payload.amountAtomic <= 1{'0' * 30}", True),
        ("payload.receivedAmountAtomic exists", True),
        ("payload.receivedAmountAtomic = 0", True),
        ("payload.chainId = 8453", True),
        ("payload.chainId in 1, 10", False),
        ("payload.confirmations < 1", True),
        ("payload.amount > 25.099", True),
        ("payload.amount = 25.1", True),
        ("payload.assetSymbol = usdc", False),
        ("payload.accountId exists", False),
        ("payload.accountId absent", True),
        ("payload.accountId != acct_1", False),
        ("payload.refundId absent", True),
        ("payload.refundId = refund_1", False),
        ("payload.labels = late", True),
        ("payload.labels != late", False),
        ("payload.labels != in_review", True),
        ("payload.labels in in_review, overpaid", True),
        ("payload.metadata.tier = gold", True),
        ("payload.metadata.count = 12", True),
        ("payload.metadata.count > 9", True),
        ("payload.metadata.price <= 9.9", True),
        ("payload.metadata.tier > 9", False),
        ("payload.metadata.vip = true", True),
        ("payload.metadata.in.x = y", True),
        ("payload.metadata.tier.x exists", False),
        ("payload.metadata.order.id = o-1", True),
        ("payload.metadata.a.b.c.d = deep", True),
        ("payload.metadata.a.b absent", False),
        ("payload.metadata.a.c absent", True),
        ("payload.metadata.weight = 1.5", True),
        ("payload.metadata.weight != 1.5", False),
        ("payload.metadata.weight < 1.51", True),
        ('payload.reference in "Doe, Jane", Max', True),
        ('payload.metadata.note = "\\"quoted\\" "', True),
        ('"payload.metadata.my key" exists', True),
        ("createdAt >= 2026-09-09T14:00:00+02:00", True),
        ("createdAt < 2026-09-09T12:00:00Z", False),
    ],
)
def test_a_rule_means_what_it_says(text: str, holds: bool) -> None:
    [checked] = check_filters([rule(text)], Versions(), DATE)
    assert satisfies([checked], EVENT) is holds
    assert write_rule(checked) == text


def test_all_rules_must_hold() -> None:
    both = [rule("payload.chainId = 8453"), rule("payload.amountAtomic < 10")]
    assert satisfies(both[:1], EVENT)
    assert not satisfies(both, EVENT)
    assert satisfies([], EVENT)


@pytest.mark.parametrize(
    ("given", "path", "words"),
    [
        (EventFilter("payload.amountAtomc", "=", "1"), "field", "is no field of an event"),
        (EventFilter("payload", "exists"), "field", "is no field of an event"),
        (EventFilter("payload.metadata.", "exists"), "field", "is no field of an event"),
        (EventFilter("name", "=", "payment.suceeded"), "value", "the name of an event"),
        (EventFilter("name", "in", None, ("payment.failed", "x")), "values[1]", "name of an event"),
        (EventFilter("payload.assetSymbol", ">", "A"), "op", "numbers and times"),
        (EventFilter("payload.amountAtomic", ">="), "value", "is required with >="),
        (EventFilter("payload.amountAtomic", ">=", "1.5"), "value", "whole number"),
        (EventFilter("payload.chainId", "=", "Base"), "value", "whole number"),
        (EventFilter("createdAt", "<", "yesterday"), "value", "ISO 8601"),
        (EventFilter("payload.metadata.n", ">", "many"), "value", "decimal number"),
        (EventFilter("name", "in", "x"), "value", "must be left out with in"),
        (EventFilter("name", "exists", "x"), "value", "must be left out with exists"),
        (EventFilter("name", "in"), "values", "is required with in"),
        (EventFilter("name", "=", "x", ("y",)), "values", "must be left out with ="),
        (EventFilter("payload.chainId", "in", None, ("1", "x")), "values[1]", "whole number"),
    ],
)
def test_what_can_mean_nothing_is_refused(given: EventFilter, path: str, words: str) -> None:
    with pytest.raises(ValidationFailed) as refused:
        check_filters([LARGE, given], Versions(), DATE)
    faults = {fault.path: fault.message for fault in refused.value.fields}
    assert words in faults[f"filters[1].{path}"]


def test_every_field_of_the_catalogue_can_be_filtered() -> None:
    for event in CATALOGUE:
        for name, sample in event.sample.items():
            if not isinstance(sample, dict):
                check_filters([EventFilter(f"payload.{name}", "exists")], Versions(), DATE)


# Where they are evaluated.


@pytest.fixture
def bench() -> ReplayBench:
    return ReplayBench()


def pay(bench: ReplayBench, amount_atomic: str, name: str = "payment.succeeded") -> str:
    fields: dict[str, Any] = {**BY_NAME[name].sample, "amountAtomic": amount_atomic}
    before = set(bench.event_ids())
    event = NewEvent(name, fields, DATE)
    bench.committer.commit(
        WorkerAuthority(bench.authority.partition, "sandbox"),
        lambda tx, id_sequence: Decision(None, events=(event,)),
    )
    bench.settle()
    (id,) = set(bench.event_ids()) - before
    return id


def delivered(bench: ReplayBench, endpoint: Endpoint) -> list[str]:
    return [one.event_id for one in bench.stored(endpoint)]


def make(bench: ReplayBench, *filters: EventFilter, **more: Any) -> Endpoint:
    return bench.endpoints.create(bench.authority, url=HOOK, filters=filters, **more)[0]


def test_an_event_that_does_not_match_makes_no_delivery(bench: ReplayBench) -> None:
    endpoint = make(bench, LARGE)
    assert endpoint.filters == (LARGE,)
    pay(bench, "99999999")
    large = pay(bench, "100000000")
    bench.happen("account.created")
    bench.settle()
    assert delivered(bench, endpoint) == [large]


def test_changed_filters_are_for_what_comes(bench: ReplayBench) -> None:
    endpoint = make(bench, LARGE)
    pay(bench, "5")
    bench.update(endpoint, filters=())
    after = pay(bench, "5")
    assert delivered(bench, endpoint) == [after]
    bench.update(endpoint, filters=[rule("name = payment.failed")])
    pay(bench, "5")
    assert delivered(bench, endpoint) == [after]


def test_a_recovery_and_a_resend_keep_to_the_filters(bench: ReplayBench) -> None:
    small, large = pay(bench, "5"), pay(bench, "100000000")
    endpoint = make(bench, LARGE)
    bench.recover(endpoint, bench.clock.now() - DAY)
    assert delivered(bench, endpoint) == [large]
    with pytest.raises(ResourceConflict, match="filters"):
        bench.resend(small, endpoint)
    with pytest.raises(ResourceConflict, match="No active"):
        bench.resend(small)
    bench.resend(large)


def test_a_test_is_sent_whatever_the_filters(bench: ReplayBench) -> None:
    endpoint = make(bench, LARGE)
    sent = bench.test(endpoint)
    bench.settle()
    assert [one.status for one in bench.stored(endpoint)] == ["delivered"]
    assert delivered(bench, endpoint) == [sent.event_id]


def test_the_library_names_each_fault(bench: ReplayBench) -> None:
    with pytest.raises(ValidationFailed) as refused:
        make(bench, *[EventFilter(f"payload.metadata.{n}", "exists") for n in range(11)])
    assert [fault.path for fault in refused.value.fields] == ["filters"]
    with pytest.raises(ValidationFailed) as refused:
        make(bench, EventFilter("name", "like", "x"))  # type: ignore[arg-type]
    assert [fault.path for fault in refused.value.fields] == ["filters[0].op"]
    texts = tuple(f"{n:0200}" for n in range(50))
    with pytest.raises(ValidationFailed) as refused:
        make(bench, *[EventFilter(f"payload.metadata.{n}", "in", None, texts) for n in range(10)])
    assert [fault.path for fault in refused.value.fields] == ["filters"]
    endpoint = make(bench)
    changes = EndpointChanges(filters=(EventFilter("nmae", "exists"),))
    with pytest.raises(ValidationFailed) as refused:
        bench.endpoints.update(bench.authority, endpoint.id, changes)
    assert [fault.path for fault in refused.value.fields] == ["filters[0].field"]
    assert not bench.endpoints.get(bench.authority, endpoint.id).filters


# CloudEvents.


def test_a_cloud_event_has_the_attributes_of_the_event(bench: ReplayBench) -> None:
    endpoint = make(bench, body_format="cloudevents")
    pay(bench, "5")
    [request] = bench.sent
    assert request.headers["Content-Type"] == "application/cloudevents+json"
    [delivery] = bench.stored(endpoint)
    body = json.loads(request.body)
    payload = body.pop("data")
    assert payload["amountAtomic"] == "5"
    assert body.pop("time").endswith("Z")
    assert body == {
        "specversion": "1.0",
        "id": delivery.event_id,
        "source": f"urn:payments-core:{bench.authority.partition}",
        "type": "payment.succeeded",
        "subject": payload["paymentId"],
        "datacontenttype": "application/json",
        "apiversion": DATE,
    }


def test_a_delivery_keeps_its_format(bench: ReplayBench) -> None:
    endpoint = make(bench, body_format="cloudevents")
    event_id = pay(bench, "5")
    bench.update(endpoint, body_format="envelope")
    bench.resend(event_id, endpoint)
    bench.settle()
    pay(bench, "6")
    first, again, other = bench.sent
    assert (first.body, first.headers["Content-Type"]) == (
        again.body,
        again.headers["Content-Type"],
    )
    assert other.headers["Content-Type"] == "application/json"


def test_every_event_has_its_subject_in_its_payload() -> None:
    for event in CATALOGUE:
        assert SUBJECTS[event.name.partition(".")[0]] in event.fields
