"""Interface "Webhook delivery" and "Webhook endpoint", row by row, and every status."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from payments_core.clock import SECOND
from payments_core.errors import InvalidState, ResourceConflict, WebhookUrlInUse
from payments_core.storage.port import Storage
from payments_core.webhooks.endpoint_fields import EndpointChanges
from payments_core.webhooks.record import delivery_id
from payments_core.webhooks.transports.port import TransportResult
from tests.webhooks.delivery_case import BACKOFF_S, CLOSINGS, NO_ANSWER, Case
from tests.webhooks.webhook_bench import HOOK, OK, Bench

RETRYABLE = {408, 425, 429, *range(500, 600)}

# A row's exact instants need a storage that never claims early; test_machine has the weak ones.
STRONG = pytest.mark.parametrize(
    "storage",
    ["memory", "sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)],
    indirect=True,
)

# The delivery's table. Each row is a name, a state to begin with, and what to do and see.


def accepted(case: Case) -> None:
    case.attempt(TransportResult(204, b"thanks"))
    assert case.delivery.status == "delivered"
    assert case.delivery.delivered_at_ms == case.bench.clock.now()
    assert (case.delivery.response_status, case.delivery.response_body) == (204, "thanks")
    case.assert_over()
    assert len(case.wire.sent) == 1


def retryable(answer: TransportResult) -> Callable[[Case], None]:
    def play(case: Case) -> None:
        before = case.delivery.attempts
        case.attempt(answer)
        wait_s = BACKOFF_S[before]
        assert (case.delivery.status, case.delivery.attempts) == ("failed", before + 1)
        assert case.delivery.next_attempt_at_ms == case.bench.clock.now() + wait_s * SECOND
        assert (case.delivery.response_status, case.delivery.delivered_at_ms) == (
            answer.status,
            None,
        )
        case.bench.run_for(wait_s - 1)
        assert len(case.wire.sent) == 1
        case.bench.run_for(1)
        assert len(case.wire.sent) == 2

    return play


def refused(status: int) -> Callable[[Case], None]:
    def play(case: Case) -> None:
        before = case.delivery.attempts
        case.attempt(TransportResult(status, b"no", retry_after="1"))
        assert (case.delivery.status, case.delivery.attempts) == ("abandoned", before + 1)
        assert (case.delivery.response_status, case.delivery.response_body) == (status, "no")
        case.assert_over()
        assert len(case.wire.sent) == 1

    return play


def forbidden(address: str) -> Callable[[Case], None]:
    def play(case: Case) -> None:
        before = case.delivery.attempts
        case.bench.names.table["partner.example"] = (address,)
        case.attempt(OK)
        assert (case.delivery.status, case.delivery.attempts) == ("abandoned", before + 1)
        assert case.delivery.response_status is None
        case.assert_over()
        assert case.wire.sent == []

    return play


def closed(change: str) -> Callable[[Case], None]:
    def play(case: Case) -> None:
        before = case.delivery.attempts
        case.change(CLOSINGS[change])
        assert (case.seen.status, case.seen.next_attempt_at_ms) == ("abandoned", None)  # at once
        case.attempt(OK)
        assert (case.delivery.status, case.delivery.attempts) == ("abandoned", before)
        case.assert_over()
        assert case.wire.sent == []

    return play


def retried(case: Case) -> None:
    first = case.delivery
    answer = case.retry()
    assert (answer.status, answer.attempts, answer.next_attempt_at_ms) == ("pending", 0, None)
    assert (answer.id, answer.event_id) == (first.id, first.event_id)
    for attempts, wait_s in enumerate(BACKOFF_S[:9], start=1):  # the full budget again
        case.attempt(TransportResult(503))
        assert (case.delivery.status, case.delivery.attempts) == ("failed", attempts)
        assert case.delivery.next_attempt_at_ms == case.bench.clock.now() + wait_s * SECOND
    case.attempt(TransportResult(503))
    assert (case.delivery.status, case.delivery.attempts) == ("abandoned", 10)
    assert {request.body.decode() for request, _ in case.wire.sent} == {first.request_body}
    case.assert_over()


ROWS: dict[str, tuple[tuple[str, ...], Callable[[Case], None]]] = {
    "2xx delivers": (("pending", "failed"), accepted),
    **{
        f"{status} fails": (("pending", "failed"), retryable(TransportResult(status, b"later")))
        for status in (408, 425, 429, 500, 503, 599)
    },
    "no answer fails": (("pending", "failed"), retryable(NO_ANSWER)),
    **{
        f"{status} abandons": (("pending", "failed"), refused(status))
        for status in (304, 307, 400, 410)
    },
    "a local address abandons": (("pending", "failed"), forbidden("127.0.0.1")),
    "a private address abandons": (("pending", "failed"), forbidden("10.0.0.7")),
    "a metadata address abandons": (("pending", "failed"), forbidden("169.254.169.254")),
    **{
        f"endpoint {change} abandons": (("pending", "failed"), closed(change))
        for change in CLOSINGS
    },
    "a retry call starts again": (("failed", "abandoned"), retried),
}


@pytest.mark.parametrize(
    ("state", "play"),
    [
        pytest.param(state, play, id=f"{state}: {name}")
        for name, (states, play) in ROWS.items()
        for state in states
    ],
)
@STRONG
def test_row_of_the_delivery_table(
    state: str, play: Callable[[Case], None], storage: Storage
) -> None:
    play(Case(state, storage))


@pytest.mark.parametrize("state", ["pending", "failed"])
@pytest.mark.parametrize(
    "answer", [TransportResult(500), TransportResult(429, retry_after="5"), NO_ANSWER]
)
def test_row_of_the_delivery_table_where_the_limit_is_reached(
    state: str, answer: TransportResult
) -> None:
    limit = {"pending": 1, "failed": 2}[state]
    case = Case(state, max_attempts=limit)
    case.attempt(answer)
    assert (case.delivery.status, case.delivery.attempts) == ("abandoned", limit)
    case.assert_over()
    assert len(case.wire.sent) == 1


@pytest.mark.parametrize(
    ("state", "changes", "why"),
    [
        ("pending", None, "pending"),
        ("delivered", None, "delivered"),
        ("failed", CLOSINGS["disabled"], "disabled"),
        ("abandoned", CLOSINGS["archived"], "archived"),
        ("failed", CLOSINGS["narrowed"], "not subscribed"),
        ("abandoned", CLOSINGS["narrowed"], "not subscribed"),
    ],
)
def test_a_retry_call_outside_of_its_row_is_refused_and_changes_nothing(
    state: str, changes: EndpointChanges | None, why: str
) -> None:
    case = Case(state)
    if changes is not None:
        case.change(changes)
        case.bench.run()
    before, jobs = case.delivery, case.bench.jobs_of(case.endpoint)
    with pytest.raises(ResourceConflict, match=why):
        case.retry()
    assert case.delivery == before
    assert case.bench.jobs_of(case.endpoint) == jobs


def test_a_second_retry_call_finds_it_requeued() -> None:
    case = Case("abandoned")
    case.retry()
    with pytest.raises(ResourceConflict, match="pending"):
        case.retry()
    assert len(case.bench.jobs_of(case.endpoint)) == 1


# Every status.


@pytest.mark.parametrize("state", ["pending", "failed"])
@pytest.mark.parametrize("hundred", [100, 200, 300, 400, 500])
def test_every_status_leads_where_the_interface_says(state: str, hundred: int) -> None:
    case = Case(state)
    first = True
    for status in range(hundred, hundred + 100):
        if not first:
            case.event_id = case.bench.happen()
            case.id = delivery_id(case.event_id, case.endpoint_id)
            if state == "failed":
                case.attempt(TransportResult(502))
        first = False
        case.attempt(TransportResult(status))
        want = "delivered" if hundred == 200 else "failed" if status in RETRYABLE else "abandoned"
        assert (status, case.delivery.status) == (status, want)
        assert case.delivery.response_status == status
        assert (case.delivery.delivered_at_ms is not None) == (want == "delivered")
        assert (case.delivery.next_attempt_at_ms is not None) == (want == "failed")


# The endpoint's table.


@pytest.mark.parametrize("start", ["active", "disabled"])
@pytest.mark.parametrize("target", ["active", "disabled", "archived"])
@STRONG
def test_row_of_the_endpoint_table(start: Any, target: Any, storage: Storage) -> None:
    bench = Bench(storage)
    endpoint = bench.endpoint()
    bench.endpoints.update(bench.authority, endpoint.id, EndpointChanges(status=start))
    changed = bench.endpoints.update(bench.authority, endpoint.id, EndpointChanges(status=target))
    assert changed.status == target
    assert bench.endpoints.get(bench.authority, endpoint.id).status == target


@pytest.mark.parametrize(
    "changes",
    [
        EndpointChanges(status="active"), EndpointChanges(status="disabled"),
        EndpointChanges(status="archived"), EndpointChanges(description="x"),
        EndpointChanges(subscribed_events=("account.created",)), EndpointChanges(),
    ],
    ids=str,
)  # fmt: skip
def test_row_of_the_endpoint_table_archived_is_final(changes: EndpointChanges) -> None:
    bench = Bench()
    endpoint = bench.endpoint()
    archived = bench.endpoints.update(
        bench.authority, endpoint.id, EndpointChanges(status="archived")
    )
    with pytest.raises(InvalidState):
        bench.endpoints.update(bench.authority, endpoint.id, changes)
    with pytest.raises(InvalidState):
        bench.endpoints.rotate_secret(bench.authority, endpoint.id)
    assert bench.endpoints.get(bench.authority, endpoint.id).updated_at_ms == archived.updated_at_ms


def test_row_of_the_endpoint_table_one_active_endpoint_per_url() -> None:
    bench = Bench()
    first = bench.endpoint(HOOK)
    bench.endpoints.update(bench.authority, first.id, EndpointChanges(status="disabled"))
    second = bench.endpoint(HOOK)
    with pytest.raises(WebhookUrlInUse):
        bench.endpoints.update(bench.authority, first.id, EndpointChanges(status="active"))
    assert bench.endpoints.get(bench.authority, first.id).status == "disabled"
    bench.endpoints.update(bench.authority, second.id, EndpointChanges(status="archived"))
    bench.endpoints.update(bench.authority, first.id, EndpointChanges(status="active"))
