"""The transition tables, state by trigger, and what each outcome of an attempt leads to."""

from __future__ import annotations

import itertools

import attrs
import pytest

from payments_core.clock import HOUR, SECOND
from payments_core.engine.events import Event
from payments_core.errors import InvalidState, ResourceConflict
from payments_core.storage.jobs import Job
from payments_core.webhooks.endpoint_fields import EndpointChanges
from payments_core.webhooks.failures import ANSWER_CHARACTERS, FAILED_ATTEMPTS_KEPT
from payments_core.webhooks.lifecycle import (
    ABANDON,
    DELIVERY,
    ENDPOINT,
    STATUS_TRIGGERS,
    AttemptResult,
    abandon_reason,
    attempt_job,
    decide_abandon,
    decide_attempt,
    decide_create,
    decide_retry,
    decide_rotate,
    decide_update,
    new_delivery,
    with_effective_status,
)
from payments_core.webhooks.record import Delivery, Endpoint
from payments_core.webhooks.retry_schedule import RETRY_DELAYS_MS

NOW = 1_790_000_000_000
LATER = NOW + 5 * SECOND
MAX = 10

ENDPOINT_GRID = {
    (None, "create"): "active",
    ("active", "activate"): "active",
    ("active", "disable"): "disabled",
    ("active", "archive"): "archived",
    ("active", "edit"): "active",
    ("active", "rotate"): "active",
    ("disabled", "activate"): "active",
    ("disabled", "disable"): "disabled",
    ("disabled", "archive"): "archived",
    ("disabled", "edit"): "disabled",
    ("disabled", "rotate"): "disabled",
}
DELIVERY_GRID = {
    (None, "create"): "pending",
    ("pending", "deliver"): "delivered",
    ("pending", "fail"): "failed",
    ("pending", "refuse"): "abandoned",
    ("pending", "forbid"): "abandoned",
    ("pending", "exhaust"): "abandoned",
    ("pending", "close"): "abandoned",
    ("pending", "unsubscribe"): "abandoned",
    ("failed", "deliver"): "delivered",
    ("failed", "fail"): "failed",
    ("failed", "refuse"): "abandoned",
    ("failed", "forbid"): "abandoned",
    ("failed", "exhaust"): "abandoned",
    ("failed", "close"): "abandoned",
    ("failed", "unsubscribe"): "abandoned",
    ("failed", "retry"): "pending",
    ("abandoned", "retry"): "pending",
    ("failed", "resend"): "pending",
    ("abandoned", "resend"): "pending",
    ("delivered", "resend"): "pending",
}


@pytest.mark.parametrize(
    ("machine", "grid"), [(ENDPOINT, ENDPOINT_GRID), (DELIVERY, DELIVERY_GRID)]
)
def test_every_state_and_trigger_is_in_the_grid_or_refused(machine, grid) -> None:  # type: ignore[no-untyped-def]
    assert machine.triggers == {trigger for _, trigger in grid}
    for state, trigger in itertools.product((None, *machine.states), machine.triggers):
        if (state, trigger) in grid:
            assert machine.step(state, trigger).target == grid[state, trigger]
        else:
            with pytest.raises(InvalidState):
                machine.step(state, trigger)


def test_no_webhook_transition_makes_an_event_of_its_own() -> None:
    assert all(
        row.emits is None and row.why for row in (*ENDPOINT.transitions, *DELIVERY.transitions)
    )


def endpoint(status: str = "active", *events: str) -> Endpoint:
    return Endpoint(
        id="webhook_1", version=3, url="https://a.example/", url_digest="digest",
        subscribed_events=events, status=status, sealed_secret="sealed",  # type: ignore[arg-type]
        created_at_ms=NOW, updated_at_ms=NOW,
    )  # fmt: skip


def delivery(status: str = "pending", attempts: int = 0) -> Delivery:
    event = Event(
        id="evt_" + "A" * 24, name="payment.succeeded", api_version="2026-09-09", created_at_ms=NOW,
        payload={}, account_id="acct_1", external_user_id="user",
    )  # fmt: skip
    made = new_delivery(event, endpoint(), "{}", now=NOW)
    return attrs.evolve(made, version=1, status=status, attempts=attempts)  # type: ignore[arg-type]


def attempted(
    attempt: AttemptResult, status: str = "pending", attempts: int = 0, to: Endpoint | None = None
):  # type: ignore[no-untyped-def]
    return decide_attempt(
        delivery(status, attempts), to or endpoint(), attempt,
        now=LATER, real_now=LATER, max_attempts=MAX,
    )  # fmt: skip


# Attempts.


def test_failed_attempts_are_kept_up_to_a_number_and_to_a_length() -> None:
    one = delivery("pending", 0)
    for number in range(FAILED_ATTEMPTS_KEPT + 3):
        answer = AttemptResult(500 + number, "x" * 5_000)
        now = LATER + number
        decision = decide_attempt(
            one, endpoint(), answer, now=now, real_now=now, max_attempts=1_000
        )
        one = decision.result
    kept = [(failed.at_ms, failed.status) for failed in one.failed_attempts]
    assert kept == [(LATER + number, 500 + number) for number in range(3, 23)]
    assert {failed.answer for failed in one.failed_attempts} == {"x" * ANSWER_CHARACTERS}
    assert one.failed_attempts[-1].failure == "The endpoint answered 522."
    assert one.response_body == "x" * 5_000


def test_what_arrives_at_once_stores_no_attempt() -> None:
    assert attempted(AttemptResult(200, "ok")).result.failed_attempts == ()


@pytest.mark.parametrize("before", ["pending", "failed"])
@pytest.mark.parametrize("status", [200, 201, 204, 299])
def test_an_accepted_attempt_delivers(before: str, status: int) -> None:
    decision = attempted(AttemptResult(status, "ok"), before)
    changed = decision.result
    assert (changed.status, changed.delivered_at_ms) == ("delivered", LATER)
    assert (changed.response_status, changed.response_body) == (status, "ok")
    assert (changed.attempts, changed.next_attempt_at_ms) == (1, None)
    assert decision.next_run_at is None
    assert decision.replaces == (changed,)


@pytest.mark.parametrize("before", ["pending", "failed"])
@pytest.mark.parametrize("status", [None, 408, 425, 429, 500, 502, 503, 599])
def test_a_retryable_outcome_fails_and_comes_again(before: str, status: int | None) -> None:
    decision = attempted(AttemptResult(status), before)
    assert decision.result.status == "failed"
    assert decision.result.next_attempt_at_ms == LATER + 30 * SECOND
    assert decision.next_run_at == LATER + 30 * SECOND
    assert decision.result.updated_at_ms == LATER


@pytest.mark.parametrize("before", ["pending", "failed"])
@pytest.mark.parametrize(
    "status", [101, 199, 300, 301, 302, 307, 308, 400, 401, 404, 410, 600, 999]
)
def test_any_other_status_abandons(before: str, status: int) -> None:
    decision = attempted(AttemptResult(status), before)
    assert decision.result.status == "abandoned"
    assert decision.next_run_at is None


@pytest.mark.parametrize("before", ["pending", "failed"])
def test_a_forbidden_destination_abandons(before: str) -> None:
    assert attempted(AttemptResult(forbidden=True), before).result.status == "abandoned"


@pytest.mark.parametrize(
    ("attempt", "attempts", "failure"),
    [
        (AttemptResult(204), 0, None),
        (AttemptResult(503), 0, "The endpoint answered 503."),
        (AttemptResult(503), MAX - 1, "The endpoint answered 503."),
        (AttemptResult(302), 0, "The endpoint answered 302, which is not tried again."),
        (AttemptResult(), 0, "The endpoint did not answer."),
        (AttemptResult(failure="It hung."), 0, "It hung."),
        (AttemptResult(failure="x" * 900), 0, "x" * 199 + "…"),
        (
            AttemptResult(forbidden=True), 0,
            "The URL leads to an address that webhooks must not use.",
        ),
    ],
)  # fmt: skip
def test_a_failure_is_reported_in_words(
    attempt: AttemptResult, attempts: int, failure: str | None
) -> None:
    assert attempted(attempt, "failed", attempts).result.failure == failure


def test_the_waits_are_those_of_the_interface() -> None:
    waits = [
        attempted(AttemptResult(500), "failed", attempts).next_run_at - LATER
        for attempts in range(MAX - 1)
    ]
    assert waits == [*RETRY_DELAYS_MS, HOUR]
    assert [wait // SECOND for wait in RETRY_DELAYS_MS] == [30, 60, 120, 240, 480, 960, 1920, 3600]


def test_the_last_attempt_abandons() -> None:
    assert attempted(AttemptResult(500), "failed", MAX - 2).result.status == "failed"
    last = attempted(AttemptResult(500), "failed", MAX - 1)
    assert (last.result.status, last.result.attempts, last.next_run_at) == ("abandoned", MAX, None)


def test_the_last_attempt_may_still_succeed() -> None:
    assert attempted(AttemptResult(200), "failed", MAX - 1).result.status == "delivered"


def test_retry_after_replaces_the_wait_on_a_retryable_response() -> None:
    assert attempted(AttemptResult(503, retry_after="7")).next_run_at == LATER + 7 * SECOND
    assert attempted(AttemptResult(503, retry_after="soon")).next_run_at == LATER + 30 * SECOND


@pytest.mark.parametrize(
    "to", [endpoint("disabled"), endpoint("archived"), endpoint("active", "x")]
)
def test_an_endpoint_that_closed_during_an_attempt_gets_no_other(to: Endpoint) -> None:
    assert attempted(AttemptResult(500), to=to).result.status == "abandoned"
    assert attempted(AttemptResult(200), to=to).result.status == "delivered"


@pytest.mark.parametrize("status", ["delivered", "abandoned"])
def test_an_ended_delivery_takes_no_attempt(status: str) -> None:
    with pytest.raises(InvalidState):
        attempted(AttemptResult(200), status)


# What is no longer wanted.


def test_a_delivery_is_unwanted_once_its_endpoint_is_closed_or_narrowed() -> None:
    assert abandon_reason(delivery(), endpoint()) is None
    assert abandon_reason(delivery(), endpoint("active", "payment.succeeded")) is None
    assert abandon_reason(delivery(), endpoint("active", "payment.created")) == "unsubscribe"
    assert abandon_reason(delivery(), endpoint("disabled")) == "close"
    assert abandon_reason(delivery(), endpoint("archived")) == "close"


@pytest.mark.parametrize("status", ["pending", "failed"])
def test_an_unwanted_delivery_is_seen_as_abandoned_before_its_row_says_so(status: str) -> None:
    waiting = attrs.evolve(delivery(status), next_attempt_at_ms=LATER)
    seen = with_effective_status(waiting, endpoint("disabled"))
    assert (seen.status, seen.next_attempt_at_ms) == ("abandoned", None)
    assert seen.updated_at_ms == waiting.updated_at_ms
    assert with_effective_status(waiting, endpoint()) == waiting


@pytest.mark.parametrize("status", ["delivered", "abandoned"])
def test_an_ended_delivery_is_seen_as_it_is(status: str) -> None:
    assert with_effective_status(delivery(status), endpoint("archived")) == delivery(status)


@pytest.mark.parametrize("trigger", ["close", "unsubscribe"])
def test_abandoning_counts_as_no_attempt(trigger) -> None:  # type: ignore[no-untyped-def]
    changed = decide_abandon(delivery("failed", 3), trigger, now=LATER).result
    assert (changed.status, changed.attempts, changed.updated_at_ms) == ("abandoned", 3, LATER)


# Endpoints.


def test_a_new_endpoint_is_inserted() -> None:
    assert decide_create(endpoint()).inserts == (endpoint(),)


@pytest.mark.parametrize("target", STATUS_TRIGGERS)
def test_an_archived_endpoint_cannot_change(target) -> None:  # type: ignore[no-untyped-def]
    for changes in (
        EndpointChanges(status=target),
        EndpointChanges(description="x"),
        EndpointChanges(),
    ):
        with pytest.raises(InvalidState):
            decide_update(endpoint("archived"), changes, now=LATER)
    with pytest.raises(InvalidState):
        decide_rotate(endpoint("archived"), "new", now=LATER)


def test_a_rotation_replaces_the_secret() -> None:
    changed = decide_rotate(endpoint("disabled"), "new", now=LATER).result
    assert (changed.sealed_secret, changed.updated_at_ms) == ("new", LATER)


def test_a_change_that_changes_nothing_writes_nothing() -> None:
    decision = decide_update(endpoint(), EndpointChanges(status="active"), now=LATER)
    assert decision.replaces == ()
    assert decision.result == endpoint()


@pytest.mark.parametrize(
    ("before", "changes", "gives_up"),
    [
        (endpoint(), EndpointChanges(status="disabled"), True),
        (endpoint(), EndpointChanges(status="archived"), True),
        (endpoint("disabled"), EndpointChanges(status="archived"), False),
        (endpoint("disabled"), EndpointChanges(status="active"), False),
        (endpoint(), EndpointChanges(subscribed_events=("a",)), True),
        (endpoint("active", "a", "b"), EndpointChanges(subscribed_events=("a",)), True),
        (endpoint("active", "a"), EndpointChanges(subscribed_events=("b",)), True),
        (endpoint("active", "a"), EndpointChanges(subscribed_events=("a", "b")), False),
        (endpoint("active", "a"), EndpointChanges(subscribed_events=()), False),
        (endpoint(), EndpointChanges(description="new"), False),
        (endpoint("active", "a"), EndpointChanges(subscribed_events=(), status="disabled"), True),
    ],
)
def test_what_was_on_its_way_is_abandoned_where_the_endpoint_gives_something_up(
    before: Endpoint, changes: EndpointChanges, gives_up: bool
) -> None:
    decision = decide_update(before, changes, now=LATER)
    assert [job.kind for job in decision.jobs] == ([ABANDON] if gives_up else [])
    assert decision.result.revision == before.revision + gives_up
    assert decision.result.updated_at_ms == LATER


# Retrying.


@pytest.mark.parametrize("status", ["failed", "abandoned"])
@pytest.mark.parametrize("has_job", [True, False])
def test_a_retry_starts_again_with_the_full_budget(status: str, has_job: bool) -> None:
    before = attrs.evolve(delivery(status, 10), endpoint_revision=0)
    job = attempt_job(before, "sandbox", now=NOW) if has_job else None
    decision = decide_retry(before, endpoint(), job, "sandbox", now=LATER)
    changed = decision.result
    assert (changed.status, changed.attempts, changed.endpoint_revision) == ("pending", 0, 1)
    assert decision.holds == (endpoint(),)
    if job is not None:
        assert changed.job_id == job.id
        assert decision.replaces[1] == attrs.evolve(job, due_at=LATER)
    else:
        (fresh,) = decision.inserts
        assert isinstance(fresh, Job)
        assert fresh.id == changed.job_id != before.job_id
        assert (fresh.due_at, fresh.queue) == (LATER, "sandbox.webhooks")


@pytest.mark.parametrize(
    ("status", "to", "leased", "why"),
    [
        ("failed", endpoint("disabled"), False, "disabled"),
        ("failed", endpoint("archived"), False, "archived"),
        ("abandoned", endpoint("active", "other"), False, "not subscribed"),
        ("pending", endpoint(), False, "pending"),
        ("delivered", endpoint(), False, "delivered"),
        ("failed", endpoint(), True, "in progress"),
    ],
)
def test_each_conflict_of_a_retry(status: str, to: Endpoint, leased: bool, why: str) -> None:
    job = attempt_job(delivery(), "sandbox", now=NOW)
    job = attrs.evolve(job, lease_until=LATER + 1 if leased else LATER)
    with pytest.raises(ResourceConflict) as raised:
        decide_retry(delivery(status), to, job, "sandbox", now=LATER)
    assert why in str(raised.value)
