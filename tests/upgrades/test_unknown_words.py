"""Words of the next release in rows that this one meets: of jobs, events and statuses."""

from __future__ import annotations

from typing import Any

import attrs
import falcon.testing
import pytest

from payments_core.engine.events import Event
from payments_core.engine.jobs.parking import CLAIMS_BEFORE_PARKING, UNKNOWN_KIND_DELAY_MS
from payments_core.payments.record import Payment
from payments_core.storage.jobs import NEVER
from payments_core.storage.port import Transaction
from tests.core.engine.jobs.bench import PASSING, STOPPING, Bench
from tests.http.api_harness import ApiHarness
from tests.http.checkout import BASE

STATUS = "under_screening"


@pytest.mark.parametrize("queue", [STOPPING, PASSING], ids=["stopping", "passing"])
def test_a_job_of_a_kind_that_came_later_waits_for_a_worker_that_knows_it(queue: object) -> None:
    """However often the old one claims it first; and those behind it in a lane that stops wait."""
    bench = Bench()
    old = bench.worker(STOPPING, PASSING)
    new = bench.worker(STOPPING, PASSING, screen=bench.note)
    bench.add("a", "screen", queue, lane="shared")  # type: ignore[arg-type]
    bench.add("b", "note", queue, lane="shared", delay_ms=1)  # type: ignore[arg-type]
    for _ in range(2 * CLAIMS_BEFORE_PARKING):
        old.run_due()
        bench.clock.advance(UNKNOWN_KIND_DELAY_MS // 1_000 + 1)
    assert bench.ran == ([] if queue is STOPPING else ["b"])
    assert bench.jobs()["a"].lease_until < NEVER
    new.run_until_idle()
    assert sorted(bench.ran) == ["a", "b"]


@pytest.fixture
def api() -> ApiHarness:
    return ApiHarness()


@pytest.fixture
def payment_id(api: ApiHarness) -> str:
    """A Payment that the next release has put into a status of its own."""
    made = api.call(
        "POST",
        "/v2/payments",
        {
            "intent": "receive",
            "amount": "5.00",
            "chainId": BASE,
            "destination": {"type": "account", "accountId": api.account_id},
        },
        key="payment",
    )
    assert made.status == 201, made.body
    id = str(made.json["id"])

    def work(tx: Transaction) -> None:
        payment = tx.get(Payment, id, for_update=True)
        assert payment is not None
        tx.replace(attrs.evolve(payment, status=STATUS))

    api.service.parts.ports.storage.transact(api.partition, work)
    return id


def ask(api: ApiHarness, method: str, path: str, body: object = None) -> Any:
    """A call that is not held against the document, which does not know the word either."""
    headers = {"Authorization": api.basic(), "Idempotency-Key": "act"}
    client = falcon.testing.TestClient(api.app)
    return client.simulate_request(method, path, headers=headers, json=body)


def test_a_payment_in_a_status_that_came_later_is_shown_as_it_is(
    api: ApiHarness, payment_id: str
) -> None:
    seen = ask(api, "GET", f"/v2/payments/{payment_id}")
    assert (seen.status_code, seen.json["status"]) == (200, STATUS)
    listed = ask(api, "GET", "/v2/payments")
    assert [payment["status"] for payment in listed.json["data"]] == [STATUS]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("cancel", None),
        ("refunds", {}),
        ("reconcile", {"action": "accept"}),
        ("reconcile", {"action": "retry_execution"}),
    ],
)
def test_nothing_is_done_to_a_payment_in_a_status_that_came_later(
    api: ApiHarness, payment_id: str, path: str, body: object
) -> None:
    """What no row of the table allows is refused, and what is refused has not failed."""
    seen = ask(api, "POST", f"/v2/payments/{payment_id}/{path}", body)
    assert 400 <= seen.status_code < 500, seen.text
    after = ask(api, "GET", f"/v2/payments/{payment_id}")
    assert after.json["status"] == STATUS


def test_an_event_of_a_name_that_came_later_is_listed(api: ApiHarness) -> None:
    event = Event(
        id=api.service.parts.ports.committer.id_sequence().issue("evt"),
        name="payment.screened",
        api_version="2026-09-09",
        created_at_ms=api.service.parts.ports.clock.now(),
        payload={"paymentId": "payment_1"},
    )
    api.service.parts.ports.storage.transact(api.partition, lambda tx: tx.insert(event))
    listed = ask(api, "GET", "/v2/console/events")
    assert listed.status_code == 200, listed.text
    assert "payment.screened" in {event["name"] for event in listed.json["data"]}
