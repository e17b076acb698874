"""Events sent again: tests, resends and recoveries, on strong and on weak storage."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import pytest

from payments_core.clock import DAY, to_datetime
from payments_core.errors import NotFound, ResourceConflict, ValidationFailed
from payments_core.storage.memory.adapter import MemoryStorage, Weakness
from payments_core.tenants.record import Environment
from payments_core.webhooks.dispatch import recovery as recovering
from payments_core.webhooks.dispatch.job_handlers import TASK_QUEUE
from payments_core.webhooks.lifecycle import RECOVER
from payments_core.webhooks.transports.port import TransportResult
from tests.webhooks.replay_bench import ReplayBench
from tests.webhooks.webhook_bench import HOOK, OK, Wire

OTHER = "https://other.example/hook"


@pytest.fixture(params=[None, 1, 2, 3])
def bench(request: pytest.FixtureRequest) -> ReplayBench:
    weakness = None if request.param is None else Weakness(seed=request.param, clock_ahead=0)
    return ReplayBench(MemoryStorage(weakness))


def refused(operation: Callable[[], object], why: str) -> None:
    with pytest.raises(ResourceConflict) as raised:
        operation()
    assert why in str(raised.value)


# Tests.


def test_a_test_goes_to_its_endpoint_alone_whatever_that_subscribed_to(bench: ReplayBench) -> None:
    endpoint = bench.endpoint(HOOK, "account.updated")
    everything = bench.endpoint(OTHER)
    delivery = bench.test(endpoint)
    assert (delivery.status, delivery.event_name) == ("pending", "webhook.test")
    bench.settle()
    assert {request.headers["x-service-event"] for request in bench.sent} == {"webhook.test"}
    assert {request.headers["x-service-event-id"] for request in bench.sent} == {delivery.event_id}
    assert [item.status for item in bench.stored(endpoint)] == ["delivered"]
    assert not bench.stored(everything)
    event = bench.events.get(bench.authority, delivery.event_id)
    assert event.payload == {"webhookId": endpoint.id}
    assert bench.event_ids() == [event.id]


@pytest.mark.parametrize("status", ["disabled", "archived"])
def test_an_endpoint_that_is_not_active_is_not_tested(bench: ReplayBench, status: str) -> None:
    endpoint = bench.endpoint()
    bench.update(endpoint, status=status)
    refused(lambda: bench.test(endpoint), status)
    assert not bench.event_ids()


def test_a_test_that_fails_is_tried_again_and_survives_a_narrowing(bench: ReplayBench) -> None:
    bench.answer(TransportResult(500))
    endpoint = bench.endpoint()
    bench.test(endpoint)
    bench.settle()
    bench.update(endpoint, subscribed_events=("account.updated",))
    bench.settle()
    [failed] = bench.deliveries(endpoint)
    assert failed.status == "failed"
    bench.answer(OK)
    bench.run_for(120)
    assert [item.status for item in bench.deliveries(endpoint)] == ["delivered"]


def test_a_test_that_was_abandoned_can_be_retried(bench: ReplayBench) -> None:
    bench.answer(TransportResult(400))
    endpoint = bench.endpoint(HOOK, "account.updated")
    delivery = bench.test(endpoint)
    bench.settle()
    retried = bench.endpoints.retry(bench.authority, endpoint.id, delivery.id)
    assert retried.status == "pending"


# Resends.


def test_what_was_delivered_goes_out_again_under_the_same_ids_and_body(bench: ReplayBench) -> None:
    endpoint = bench.endpoint()
    event_id = bench.happen()
    bench.settle()
    [before] = bench.stored(endpoint)
    assert before.status == "delivered"
    sent = len(bench.sent)
    [again] = bench.resend(event_id, endpoint)
    assert (again.id, again.status, again.attempts) == (before.id, "pending", 0)
    assert again.delivered_at_ms is None
    bench.settle()
    [after] = bench.stored(endpoint)
    assert (after.id, after.status, after.attempts) == (before.id, "delivered", 1)
    assert len(bench.sent) > sent
    assert len({request.body for request in bench.sent}) == 1
    for header in ("x-service-delivery", "x-service-event-id"):
        assert len({request.headers[header] for request in bench.sent}) == 1


def test_a_resend_makes_the_delivery_that_an_endpoint_never_had(bench: ReplayBench) -> None:
    first = bench.endpoint()
    event_id = bench.happen()
    bench.settle()
    late = bench.endpoint(OTHER)
    [made] = bench.resend(event_id, late)
    assert (made.endpoint_id, made.status) == (late.id, "pending")
    bench.settle()
    [one], [two] = bench.stored(first), bench.stored(late)
    assert two.status == "delivered"
    assert (one.event_id, one.request_body) == (two.event_id, two.request_body)


def test_without_a_name_every_active_subscribed_endpoint_gets_it(bench: ReplayBench) -> None:
    endpoints = [bench.endpoint(f"https://h{n}.example/") for n in range(3)]
    other = bench.endpoint("https://x.example/", "account.updated")
    closed = bench.endpoint("https://y.example/")
    bench.update(closed, status="disabled")
    event_id = bench.happen()
    bench.settle()
    before = len(bench.sent)
    resent = bench.resend(event_id)
    assert {item.endpoint_id for item in resent} == {item.id for item in endpoints}
    refused(lambda: bench.resend(event_id), "its delivery is in progress")
    bench.settle()
    assert len(bench.sent) - before >= 3
    assert not bench.stored(other)
    assert not bench.stored(closed)


def test_each_conflict_of_a_resend(bench: ReplayBench) -> None:
    endpoint = bench.endpoint()
    event_id = bench.happen()
    bench.settle()
    bench.resend(event_id, endpoint)
    refused(lambda: bench.resend(event_id, endpoint), "pending")
    bench.update(endpoint, subscribed_events=("account.updated",))
    refused(lambda: bench.resend(event_id, endpoint), "not subscribed")
    refused(lambda: bench.resend(event_id), "none is subscribed")
    bench.update(endpoint, status="disabled")
    refused(lambda: bench.resend(event_id, endpoint), "disabled")
    bench.update(endpoint, status="archived")
    refused(lambda: bench.resend(event_id, endpoint), "archived")


def test_a_delivery_under_way_is_not_resent() -> None:
    class Watched(Wire):
        def send(self, request, addresses, deadline):  # type: ignore[no-untyped-def]
            if self.sent:
                refused(
                    lambda: bench.resend(event_id, endpoint),
                    "An attempt of this delivery is in progress",
                )
            return super().send(request, addresses, deadline)

    bench = ReplayBench(wire=Watched([TransportResult(500), OK]))
    endpoint = bench.endpoint()
    event_id = bench.happen()
    bench.run_for(60)
    assert len(bench.sent) == 2


def test_a_test_is_resent_to_the_endpoint_that_it_was_for(bench: ReplayBench) -> None:
    endpoint, other = bench.endpoint(), bench.endpoint(OTHER)
    delivery = bench.test(endpoint)
    bench.settle()
    refused(lambda: bench.resend(delivery.event_id, other), "another")
    assert [item.id for item in bench.resend(delivery.event_id)] == [delivery.id]


def test_events_and_endpoints_of_others_are_not_found(bench: ReplayBench) -> None:
    endpoint, event_id = bench.endpoint(), bench.happen()
    stranger = bench.environment("env_b")
    foreign = bench.endpoints.create(stranger, url=OTHER)[0]
    events = bench.events
    for operation in (
        lambda: events.get(stranger, event_id),
        lambda: events.resend(stranger, event_id),
        lambda: events.resend(stranger, event_id, endpoint_id=foreign.id),
        lambda: events.resend(bench.authority, event_id, endpoint_id=foreign.id),
        lambda: events.send_test(stranger, endpoint.id),
        lambda: events.recover(stranger, endpoint.id, to_datetime(bench.clock.now())),
    ):
        with pytest.raises(NotFound):
            operation()
    assert not events.list(stranger).records


# Recoveries.


def test_a_recovery_sends_what_is_missing_failed_or_abandoned_and_nothing_else(
    bench: ReplayBench,
) -> None:
    endpoint = bench.endpoint(HOOK, "account.created", "account.updated")
    bench.answer(TransportResult(400))
    too_early = bench.happen()
    bench.settle()
    bench.clock.advance(10)
    since = bench.clock.now()
    abandoned = bench.happen()
    bench.settle()
    bench.answer(OK)
    delivered = bench.happen()
    bench.settle()
    bench.answer(TransportResult(500))
    failed = bench.happen("account.updated")
    bench.settle()
    bench.update(endpoint, status="disabled")
    missing = bench.happen()
    unwanted = bench.happen("dispute.flagged")
    bench.settle()
    bench.update(endpoint, status="active")
    bench.clock.advance(60)
    bench.answer(OK)
    bench.wire.sent.clear()  # type: ignore[attr-defined]
    bench.recover(endpoint, since)
    reported = [request.headers["x-service-event-id"] for request in bench.sent]
    assert set(reported) == {abandoned, failed, missing}
    assert not {too_early, delivered, unwanted} & set(reported)
    by_event = {item.event_id: item.status for item in bench.stored(endpoint)}
    assert by_event == {
        too_early: "abandoned",
        **dict.fromkeys((abandoned, delivered, failed, missing), "delivered"),
    }


def test_a_recovery_goes_on_over_many_pages_and_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recovering, "PAGE_SIZE", 3)
    monkeypatch.setattr(recovering, "MAX_PAGES_PER_JOB", 2)
    bench = ReplayBench()
    since = bench.clock.now()
    ids = []
    for _ in range(40):
        ids.append(bench.happen())
        bench.clock.advance(0.5)
    bench.settle()
    endpoint = bench.endpoint()
    bench.recover(endpoint, since)
    reported = [request.headers["x-service-event-id"] for request in bench.sent]
    assert reported == ids  # oldest first, each once
    assert bench.jobs_in(TASK_QUEUE, f"recover:{endpoint.id}") == ()


def test_a_recovery_that_is_asked_for_twice_sends_once(bench: ReplayBench) -> None:
    since = bench.clock.now()
    ids = {bench.happen() for _ in range(5)}
    bench.settle()
    endpoint = bench.endpoint()
    for _ in range(2):
        bench.events.recover(bench.authority, endpoint.id, to_datetime(since))
    bench.settle()
    assert {item.event_id for item in bench.stored(endpoint)} == ids
    assert all(item.status == "delivered" for item in bench.stored(endpoint))
    before = len(bench.sent)
    bench.recover(endpoint, since)
    assert len(bench.sent) == before


def test_a_recovery_that_crashed_begins_again_and_repeats_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(recovering, "PAGE_SIZE", 2)
    bench = ReplayBench()
    since = bench.clock.now()
    ids = []
    for _ in range(10):
        ids.append(bench.happen())
        bench.clock.advance(1)
    bench.settle()
    endpoint = bench.endpoint()
    bench.events.recover(bench.authority, endpoint.id, to_datetime(since))
    commit, left = bench.committer.commit, [3]

    def crash(*arguments: Any, **more: Any) -> Any:
        if left[0] == 0:
            raise RuntimeError("the process ended here")
        left[0] -= 1
        return commit(*arguments, **more)

    monkeypatch.setattr(bench.committer, "commit", crash)
    bench.worker.run_due(limit=1)
    monkeypatch.setattr(bench.committer, "commit", commit)
    assert len(bench.stored(endpoint)) == 6
    bench.run_for(120)
    assert sorted(request.headers["x-service-event-id"] for request in bench.sent) == sorted(ids)


def test_what_was_doomed_when_the_endpoint_closed_is_saved(bench: ReplayBench) -> None:
    bench.answer(TransportResult(500))
    endpoint = bench.endpoint()
    since = bench.clock.now()
    bench.happen()
    bench.settle()
    bench.update(endpoint, status="disabled")
    bench.update(endpoint, status="active")  # before the worker has abandoned anything
    bench.clock.advance(1)
    bench.events.recover(bench.authority, endpoint.id, to_datetime(since))
    bench.answer(OK)
    bench.settle()
    bench.run_for(60)
    assert [item.status for item in bench.stored(endpoint)] == ["delivered"]


def test_what_is_pending_and_doomed_is_kept_by_a_recovery_that_comes_first() -> None:
    bench = ReplayBench()
    endpoint, since = bench.endpoint(), bench.clock.now()
    bench.happen()
    bench.worker.run_due(limit=1)  # the delivery is made, and not attempted
    bench.update(endpoint, status="disabled")
    bench.update(endpoint, status="active")
    bench.events.recover(bench.authority, endpoint.id, to_datetime(since))
    claimed = bench.storage.claim(
        "sandbox.webhook_tasks", bench.clock.now(), lease_ms=1_000, limit=10, lane_concurrency=1
    )
    [recovery] = [item for item in claimed if item.job.kind == RECOVER]
    bench.recovery.recover(recovery)
    [kept] = bench.stored(endpoint)
    assert (kept.status, kept.endpoint_revision) == ("pending", 2)
    bench.run_for(60)
    assert [item.status for item in bench.stored(endpoint)] == ["delivered"]
    assert len(bench.sent) == 1


def test_a_recovery_ends_where_the_endpoint_closes_or_the_product_is_off(
    bench: ReplayBench,
) -> None:
    since = bench.clock.now()
    bench.happen()
    bench.settle()
    endpoint = bench.endpoint()
    bench.events.recover(bench.authority, endpoint.id, to_datetime(since))
    bench.update(endpoint, status="disabled")
    bench.settle()
    assert not bench.stored(endpoint)
    bench.update(endpoint, status="active")
    bench.events.recover(bench.authority, endpoint.id, to_datetime(since))

    def off(tx: Any) -> None:
        environment = tx.get(Environment, bench.authority.partition, for_update=True)
        tx.replace(attrs.evolve(environment, products=()))

    MemoryStorage.transact(bench.storage, bench.authority.partition, off)  # type: ignore[arg-type]
    bench.settle()
    assert not bench.stored(endpoint)


def test_what_a_recovery_does_not_take(bench: ReplayBench) -> None:
    endpoint, now = bench.endpoint(), bench.clock.now()
    for since in (now + 1, now - 30 * DAY - 1):
        with pytest.raises(ValidationFailed) as raised:
            bench.events.recover(bench.authority, endpoint.id, to_datetime(since))
        assert [fault.path for fault in raised.value.fields] == ["since"]
    bench.events.recover(bench.authority, endpoint.id, to_datetime(now - 30 * DAY))
    bench.update(endpoint, status="disabled")
    refused(
        lambda: bench.events.recover(bench.authority, endpoint.id, to_datetime(now)), "disabled"
    )


def test_a_test_of_another_endpoint_is_not_recovered(bench: ReplayBench) -> None:
    since = bench.clock.now()
    one, two = bench.endpoint(), bench.endpoint(OTHER)
    bench.answer(TransportResult(400))
    bench.test(one)
    bench.settle()
    bench.clock.advance(60)
    bench.answer(OK)
    bench.recover(two, since)
    assert not bench.stored(two)
    bench.recover(one, since)
    assert [item.status for item in bench.stored(one)] == ["delivered"]
