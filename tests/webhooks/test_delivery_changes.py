"""What changes while an attempt is under way: the endpoint, or who has the job."""

from __future__ import annotations

import pytest

from payments_core.clock import SECOND
from payments_core.engine.events import BY_NAME, NewEvent
from payments_core.engine.jobs.worker import Worker
from payments_core.storage.port import ClaimedJob
from payments_core.webhooks.dispatch.job_handlers import DELIVERY_QUEUE, FAN_OUT_QUEUE
from payments_core.webhooks.endpoint_fields import EndpointChanges
from payments_core.webhooks.lifecycle import DELIVER
from payments_core.webhooks.transports.port import TransportResult
from tests.webhooks.delivery_case import CLOSINGS, NO_ANSWER, Case
from tests.webhooks.webhook_bench import OK, Bench, Wire

ANSWERS = {
    "200": OK,
    "503": TransportResult(503, retry_after="1"),
    "no answer": NO_ANSWER,
    "400": TransportResult(400),
}
LEASE_S = DELIVERY_QUEUE.lease_ms // SECOND


# The endpoint.


@pytest.mark.parametrize("abandoned_meanwhile", [False, True], ids=["later", "meanwhile"])
@pytest.mark.parametrize("answer", ANSWERS)
@pytest.mark.parametrize("change", CLOSINGS)
@pytest.mark.parametrize("state", ["pending", "failed"])
def test_an_endpoint_that_gives_it_up_during_the_attempt(
    state: str, change: str, answer: str, abandoned_meanwhile: bool
) -> None:
    """A 2xx counts, since it was delivered; whatever else comes is the last."""
    case = Case(state)
    before = case.delivery.attempts

    def meanwhile() -> None:
        case.change(CLOSINGS[change])
        assert case.seen.status == "abandoned"
        if abandoned_meanwhile:
            case.bench.run()  # the job that abandons what was on its way

    case.attempt(ANSWERS[answer], meanwhile)
    assert case.delivery.status == ("delivered" if answer == "200" else "abandoned")
    assert case.delivery.attempts == before + 1
    assert case.delivery.response_status == ANSWERS[answer].status
    assert case.seen.status == case.delivery.status
    case.assert_over()
    assert len(case.wire.sent) == 1


@pytest.mark.parametrize("answer", ["200", "400"])
def test_an_endpoint_that_gives_up_and_comes_back_during_the_attempt(answer: str) -> None:
    case = Case()

    def meanwhile() -> None:
        case.change(EndpointChanges(status="disabled"))
        case.change(EndpointChanges(status="active"))

    case.attempt(ANSWERS[answer], meanwhile)
    assert case.delivery.status == ("delivered" if answer == "200" else "abandoned")
    case.assert_over()


@pytest.mark.parametrize("state", ["pending", "failed"])
def test_a_subscription_that_keeps_the_event_keeps_the_delivery(state: str) -> None:
    case = Case(state)
    narrowed = EndpointChanges(subscribed_events=("account.created", "account.updated"))
    case.attempt(TransportResult(503), lambda: case.change(narrowed))
    failed = case.delivery
    assert failed.status == "failed"
    case.change(EndpointChanges(subscribed_events=("account.created",)))
    case.attempt(OK)
    assert case.delivery.status == "delivered"


@pytest.mark.parametrize("state", ["failed", "abandoned", "delivered"])
def test_what_has_ended_stays_as_it_is_when_the_endpoint_closes(state: str) -> None:
    case = Case(state)
    before = case.delivery
    case.change(EndpointChanges(status="disabled"))
    case.bench.run()
    case.change(EndpointChanges(status="active"))
    case.bench.run_for(86_400)
    assert case.delivery.status == ("delivered" if state == "delivered" else "abandoned")
    if state != "failed":
        assert case.delivery == before
    assert case.wire.sent == []


def test_what_happens_after_an_endpoint_came_back_is_delivered() -> None:
    case = Case("failed")
    case.change(EndpointChanges(status="disabled"))
    missed = case.bench.happen()
    case.bench.run()
    case.change(EndpointChanges(status="active"))
    case.bench.happen()
    case.attempt(OK)
    statuses = {delivery.event_id: delivery.status for delivery in case.bench.stored(case.endpoint)}
    assert statuses[case.event_id] == "abandoned"
    assert missed not in statuses
    assert sorted(statuses.values()) == ["abandoned", "delivered"]


# The job: its lease ran out during the attempt, and another worker has it now.


@pytest.mark.parametrize("late", ANSWERS)
@pytest.mark.parametrize("other", ANSWERS)
def test_the_outcome_of_a_late_worker_is_dropped_once_another_has_finished(
    other: str, late: str
) -> None:
    case = Case()

    def meanwhile() -> None:
        case.bench.clock.advance(LEASE_S)
        case.wire.answers[:] = [ANSWERS[other]]
        case.bench.run()
        case.wire.answers[:] = [OK]

    case.attempt(ANSWERS[late], meanwhile)
    want = {"200": "delivered", "400": "abandoned"}.get(other, "failed")
    assert (case.delivery.status, case.delivery.attempts) == (want, 1)
    assert case.delivery.response_status == ANSWERS[other].status
    assert len(case.wire.sent) == 2
    ids = {request.headers["x-service-delivery"] for request, _ in case.wire.sent}
    assert ids == {case.id}
    if want == "failed":  # and its next attempt still comes
        case.attempt(OK)
        assert (case.delivery.status, case.delivery.attempts) == ("delivered", 2)
    case.assert_over()


@pytest.mark.parametrize("late", ANSWERS)
def test_the_outcome_of_a_late_worker_is_dropped_while_another_is_at_it(late: str) -> None:
    case = Case()
    taken: list[ClaimedJob] = []
    bench = case.bench
    other = Worker(
        bench.storage, bench.clock, "sandbox", {DELIVER: taken.append}, (DELIVERY_QUEUE,)
    )

    def meanwhile() -> None:
        bench.clock.advance(LEASE_S)
        other.run_due()

    before = case.delivery
    case.attempt(ANSWERS[late], meanwhile)
    assert case.delivery == before
    [claimed] = taken
    [job] = bench.jobs_of(case.endpoint)
    assert (job.claims, job.version) == (claimed.job.claims, claimed.job.version)
    assert job.lease_until == bench.clock.now() + DELIVERY_QUEUE.lease_ms
    case.wire.answers[:] = [OK]
    bench.delivery.batch_handlers()[DELIVER]([claimed])
    assert (case.delivery.status, case.delivery.attempts) == ("delivered", 1)
    case.assert_over()


@pytest.mark.parametrize("late", ["200", "503", "400"])
def test_the_outcome_of_a_late_worker_is_dropped_after_a_retry_call(late: str) -> None:
    """The delivery was abandoned meanwhile, and put back: that is a job of its own."""
    case = Case()

    def meanwhile() -> None:
        case.bench.clock.advance(LEASE_S)
        case.wire.answers[:] = [TransportResult(400)]
        case.bench.run()
        case.retry()
        case.wire.answers[:] = [TransportResult(503)]

    case.attempt(ANSWERS[late], meanwhile)
    # `attempt` runs what is due after the late one: the retry's own attempt, answered 503.
    assert (case.delivery.status, case.delivery.attempts) == ("failed", 1)
    assert case.delivery.response_status == 503
    case.attempt(OK)
    assert (case.delivery.status, case.delivery.attempts) == ("delivered", 2)
    case.assert_over()


def test_an_answer_that_comes_just_before_the_lease_ends_counts() -> None:
    case = Case()
    case.attempt(OK, lambda: case.bench.clock.advance(LEASE_S - 0.001))
    assert (case.delivery.status, case.delivery.attempts) == ("delivered", 1)
    assert len(case.wire.sent) == 1
    case.assert_over()


def test_what_was_given_up_with_an_endpoint_stays_so_when_it_opens_again() -> None:
    """Also where the job that abandons it has not come to it yet."""
    bench = Bench()
    endpoint = bench.endpoint()
    bench.happen()
    queue, now = FAN_OUT_QUEUE.full_name("sandbox"), bench.clock.now()
    claimed = bench.storage.claim(queue, now, lease_ms=60_000, limit=5, lane_concurrency=5)
    bench.delivery.fan_out(claimed)
    bench.endpoints.update(bench.authority, endpoint.id, EndpointChanges(status="disabled"))
    assert [item.status for item in bench.deliveries(endpoint)] == ["abandoned"]
    bench.endpoints.update(bench.authority, endpoint.id, EndpointChanges(status="active"))
    assert [item.status for item in bench.deliveries(endpoint)] == ["abandoned"]
    bench.run()
    assert [item.status for item in bench.stored(endpoint)] == ["abandoned"]
    assert bench.wire.sent == []  # type: ignore[attr-defined]
    bench.clock.advance(1)
    bench.happen()
    bench.run()
    assert [item.status for item in bench.stored(endpoint)] == ["delivered", "abandoned"]


def test_an_answer_full_of_control_characters_is_kept_and_ends_the_delivery() -> None:
    bench = Bench(wire=Wire([TransportResult(200, b"\x01\x00\x7f" * 1_365)]))
    endpoint = bench.endpoint()
    bench.happen()
    bench.run()
    (delivery,) = bench.stored(endpoint)
    assert (delivery.status, delivery.response_body) == (
        "delivered", "\N{REPLACEMENT CHARACTER}" * 4_095,
    )  # fmt: skip


def test_an_event_that_could_not_be_delivered_is_refused() -> None:
    fields = dict.fromkeys(BY_NAME["account.created"].fields, "\\" * 32000)
    with pytest.raises(ValueError, match="too large"):
        NewEvent("account.created", fields, "2026-09-09")
