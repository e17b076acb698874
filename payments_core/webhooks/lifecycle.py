"""The states of an endpoint and of a delivery (interface "States and transitions")."""

from __future__ import annotations

from typing import Any, Literal, cast

import attrs
from msgspec import UNSET

from payments_core.clock import Instant
from payments_core.engine.decision import Decision, NewJob
from payments_core.engine.events import TEST, Event
from payments_core.engine.state_machine import StateMachine, Transition, transitions_from
from payments_core.engine.step import Step
from payments_core.errors import ResourceConflict, WebhookUrlInUse
from payments_core.evolve import evolve
from payments_core.storage.jobs import NEVER, Job
from payments_core.webhooks.endpoint_fields import EndpointChanges
from payments_core.webhooks.failures import ENDS_UNASKED, add_failed, explain_attempt
from payments_core.webhooks.record import (
    ACTIVE_URL,
    Delivery,
    DeliveryStatus,
    Endpoint,
    EndpointStatus,
    OlderSecret,
    delivery_id,
)
from payments_core.webhooks.retry_schedule import retry_delay_ms

DELIVERY_QUEUE_NAME = "webhooks"
TASK_QUEUE_NAME = "webhook_tasks"
DELIVER = "webhooks.deliver"
ABANDON = "webhooks.abandon"
RECOVER = "webhooks.recover"
MAX_OLDER_SECRETS = 3

OPEN_STATUSES: tuple[DeliveryStatus, ...] = ("pending", "failed")
"""The states in which a delivery still has attempts to come."""

_USABLE = ("active", "disabled")

ENDPOINT = StateMachine(
    "webhook endpoint",
    (
        Transition(None, "create", "active", why="The URL is allowed as a webhook destination."),
        *transitions_from(
            _USABLE,
            "activate",
            "active",
            why="Activation is refused while another active endpoint has the same URL.",
        ),
        *transitions_from(_USABLE, "disable", "disabled", why="Pending deliveries are abandoned."),
        *transitions_from(
            _USABLE,
            "archive",
            "archived",
            why="Archiving is permanent; pending deliveries are abandoned.",
        ),
        *transitions_from(
            _USABLE,
            "edit",
            None,
            why="The description, the subscriptions, the filters or the format change.",
        ),
        *transitions_from(
            _USABLE,
            "rotate",
            None,
            why="The previous secret expires at once, or at the end of its overlap.",
        ),
    ),
    terminal=("archived",),
    actions={"edit": "change", "rotate": "rotate the signing secret"},
)

STATUS_TRIGGERS: dict[EndpointStatus, str] = {
    "active": "activate",
    "disabled": "disable",
    "archived": "archive",
}

DELIVERY = StateMachine(
    "webhook delivery",
    (
        Transition(None, "create", "pending", why="The endpoint is subscribed to the event."),
        *transitions_from(
            OPEN_STATUSES,
            "deliver",
            "delivered",
            why="The endpoint answered 2xx: the delivery is not sent again automatically.",
        ),
        *transitions_from(
            OPEN_STATUSES,
            "fail",
            "failed",
            why="408, 425, 429, 5xx, a network failure or a timeout: the delivery is retried.",
        ),
        *transitions_from(
            OPEN_STATUSES, "refuse", "abandoned", why="Any other status, including a redirect."
        ),
        *transitions_from(
            OPEN_STATUSES,
            "forbid",
            "abandoned",
            why="The URL resolves to an address that webhooks must not use.",
        ),
        *transitions_from(OPEN_STATUSES, "exhaust", "abandoned", why="The last attempt failed."),
        *transitions_from(
            OPEN_STATUSES, "close", "abandoned", why="The endpoint was disabled or archived."
        ),
        *transitions_from(
            OPEN_STATUSES,
            "unsubscribe",
            "abandoned",
            why="The endpoint is no longer subscribed to such events.",
        ),
        *transitions_from(
            ("failed", "abandoned"),
            "retry",
            "pending",
            why="The partner requested a retry; the attempt count restarts.",
        ),
        *transitions_from(
            ("failed", "abandoned", "delivered"),
            "resend",
            "pending",
            why="The partner requested the event again; its id stays the same.",
        ),
    ),
    terminal=(),
)
"""No state is terminal: a delivered event may be sent again if the partner requests it."""

_STATUSES: dict[str, DeliveryStatus] = {
    "pending": "pending",
    "failed": "failed",
    "delivered": "delivered",
    "abandoned": "abandoned",
}
_RETRYABLE = frozenset({408, 425, 429})
_FINAL_TRIGGERS = {"delivered": "deliver", "refused": "refuse"}


@attrs.frozen
class AttemptResult:
    """The outcome of an attempt: no `status` without an answer, and then `failure` says why.

    Nothing was sent if it is `forbidden`, or `postponed` for lack of room.
    """

    status: int | None = None
    body: str | None = None
    retry_after: str | None = None
    forbidden: bool = False
    postponed: bool = False
    failure: str | None = None


_FREE_FIELDS = ("description", "subscribed_events", "filters", "body_format")
"""What a change of an endpoint replaces, whatever its status."""


def decide_create(endpoint: Endpoint) -> Decision[Endpoint]:
    """A new endpoint."""
    return Decision(endpoint, inserts=(endpoint,), refusals={ACTIVE_URL: WebhookUrlInUse()})


def decide_update(
    endpoint: Endpoint, changes: EndpointChanges, *, now: Instant
) -> Decision[Endpoint]:
    """Change an endpoint. Raises InvalidState for an archived one."""
    ENDPOINT.step(endpoint.status, "edit")
    given = {name: getattr(changes, name) for name in _FREE_FIELDS}
    changed = evolve(
        endpoint, **{name: value for name, value in given.items() if value is not UNSET}
    )
    if changes.status is not UNSET:
        row = ENDPOINT.step(endpoint.status, STATUS_TRIGGERS[changes.status])
        changed = evolve(changed, status=cast(EndpointStatus, row.target), disabled_reason=None)
        if changes.status == "active" and endpoint.status != "active":
            # It starts anew.
            changed = evolve(changed, failing_since_ms=None, failing_told_at_ms=None)
    if changed == endpoint:
        return Decision(endpoint, holds=(endpoint,))
    changed = evolve(changed, updated_at_ms=now)
    jobs: tuple[NewJob, ...] = ()
    if _stops_deliveries(endpoint, changed):
        revision = endpoint.revision + 1
        closed = endpoint.closed_revision if changed.status == "active" else revision
        changed = evolve(changed, revision=revision, closed_revision=closed)
        jobs = (_abandon_job(changed, now),)
    return Decision(
        changed, replaces=(changed,), jobs=jobs, refusals={ACTIVE_URL: WebhookUrlInUse()}
    )


def _stops_deliveries(before: Endpoint, after: Endpoint) -> bool:
    """Whether pending deliveries may be obsolete now."""
    closed = before.status == "active" and after.status != "active"
    if before.subscribed_events == after.subscribed_events or not after.subscribed_events:
        return closed
    narrowed = not before.subscribed_events or not set(before.subscribed_events) <= set(
        after.subscribed_events
    )
    return closed or narrowed


def _abandon_job(endpoint: Endpoint, now: Instant) -> NewJob:
    """The job that abandons pending deliveries: perhaps too many for one transaction.

    It carries the state at the change, which may have been undone when it runs.
    """
    wanted = (*endpoint.subscribed_events, TEST)
    kept = ",".join(wanted) if endpoint.status == "active" else ""
    return NewJob(
        TASK_QUEUE_NAME,
        ABANDON,
        f"abandon:{endpoint.id}",
        now,
        endpoint.id,
        {"revision": str(endpoint.revision), "status": endpoint.status, "kept": kept},
    )


def decide_rotate(
    endpoint: Endpoint, sealed_secret: str, *, now: Instant, overlap_ms: int = 0
) -> Decision[Endpoint]:
    """Replace the signing secret; the previous one signs beside it for `overlap_ms`.

    Without an overlap every older secret ends at once, including those of earlier overlaps: that is
    the rotation after a leak. Raises InvalidState for an archived endpoint, ResourceConflict if
    too many overlap.
    """
    ENDPOINT.step(endpoint.status, "rotate")
    older: tuple[OlderSecret, ...] = ()
    if overlap_ms:
        replaced = OlderSecret(sealed=endpoint.sealed_secret, until_ms=now + overlap_ms)
        older = (replaced, *endpoint.valid_older_secrets(now))
    if len(older) > MAX_OLDER_SECRETS:  # dropping one would break what was promised for it
        raise ResourceConflict(
            f"{MAX_OLDER_SECRETS} older secrets are still valid;"
            " wait, or rotate without an overlap."
        )
    changed = evolve(endpoint, sealed_secret=sealed_secret, older_secrets=older, updated_at_ms=now)
    return Decision(changed, replaces=(changed,))


def new_delivery(event: Event, endpoint: Endpoint, body: str, *, now: Instant) -> Delivery:
    """The delivery of an event to an endpoint, under the fixed id of the pair."""
    DELIVERY.step(None, "create")
    return Delivery(
        id=delivery_id(event.id, endpoint.id),
        endpoint_id=endpoint.id,
        endpoint_revision=endpoint.revision,
        event_id=event.id,
        event_name=event.name,
        account_id=event.account_id,
        external_user_id=event.external_user_id,
        request_body=body,
        body_format=endpoint.body_format,
        created_at_ms=now,
        updated_at_ms=now,
    )


def attempt_job(delivery: Delivery, mode: str, *, now: Instant) -> Job:
    """The job that attempts a delivery."""
    return Job(
        id=delivery.job_id,
        queue=f"{mode}.{DELIVERY_QUEUE_NAME}",
        lane=f"endpoint:{delivery.endpoint_id}",
        kind=DELIVER,
        due_at=now,
        subject=delivery.id,
    )


def abandon_reason(
    delivery: Delivery, endpoint: Endpoint
) -> Literal["close", "unsubscribe"] | None:
    """Why an open delivery is to be abandoned in its endpoint's present state, or None.

    A delivery that was pending when the endpoint closed stays abandoned when it opens again.
    """
    if endpoint.status != "active" or delivery.endpoint_revision < endpoint.closed_revision:
        return "close"
    if not may_receive(endpoint, delivery.event_name):
        return "unsubscribe"
    return None


def may_receive(endpoint: Endpoint, event_name: str) -> bool:
    """Whether a delivery of that event to the endpoint may continue. A test is only for its
    endpoint, whatever its subscriptions."""
    return event_name == TEST or endpoint.subscribes(event_name)


def with_effective_status(delivery: Delivery, endpoint: Endpoint) -> Delivery:
    """The delivery as readers see it: abandoned with its endpoint, before its row is."""
    why = abandon_reason(delivery, endpoint)
    if why is None or delivery.status not in OPEN_STATUSES:
        return delivery
    return _apply_trigger(delivery, why, now=delivery.updated_at_ms).record


def decide_abandon(
    delivery: Delivery, trigger: Literal["close", "unsubscribe"], *, now: Instant
) -> Decision[Delivery]:
    """Abandon a delivery that its endpoint no longer needs; no attempt was made."""
    given_up = _apply_trigger(delivery, trigger, now=now)
    return given_up.as_decision(given_up.record)


def decide_attempt(
    delivery: Delivery,
    endpoint: Endpoint,
    attempt: AttemptResult,
    *,
    now: Instant,
    real_now: Instant,
    max_attempts: int,
) -> Decision[Delivery]:
    """The decision of an attempt. A failed delivery keeps its job for the next attempt."""
    trigger = _attempt_trigger(delivery, endpoint, attempt, max_attempts)
    attempts = delivery.attempts + 1
    changes: dict[str, Any] = {
        "attempts": attempts,
        "response_status": attempt.status,
        "response_body": attempt.body,
    }
    if trigger in ("fail", "refuse", "exhaust"):
        changes["failure"] = explain_attempt(trigger, attempt.status, attempt.failure)
    if trigger == "deliver":
        changes["delivered_at_ms"] = now
    else:
        why = explain_attempt(trigger, attempt.status, attempt.failure)
        changes["failed_attempts"] = add_failed(delivery, attempt.status, attempt.body, why, now)
    if trigger == "fail":
        wait_ms = retry_delay_ms(attempts, attempt.retry_after, real_now)
        changes["next_attempt_at_ms"] = now + wait_ms
    step = _apply_trigger(delivery, trigger, now=now, **changes)
    return evolve(step.as_decision(step.record), next_run_at=step.record.next_attempt_at_ms)


def classify_status(status: int) -> Literal["delivered", "refused", "failing"]:
    """The meaning of an endpoint's status: only `failing` ones are tried again."""
    if 200 <= status <= 299:
        return "delivered"
    return "failing" if status in _RETRYABLE or 500 <= status <= 599 else "refused"


def _attempt_trigger(
    delivery: Delivery, endpoint: Endpoint, attempt: AttemptResult, max_attempts: int
) -> str:
    status = attempt.status
    if attempt.forbidden:
        return "forbid"
    if status is not None and (ends := _FINAL_TRIGGERS.get(classify_status(status))) is not None:
        return ends
    # The rest would be tried again, if attempts are left.
    if (why := abandon_reason(delivery, endpoint)) is not None:
        return why
    return "exhaust" if delivery.attempts + 1 >= max_attempts else "fail"


def require_active_subscriber(endpoint: Endpoint, event_name: str) -> None:
    """Raise ResourceConflict unless the endpoint is active and subscribed to that event."""
    if endpoint.status != "active":
        raise ResourceConflict(f"The webhook endpoint is {endpoint.status}; activate it first.")
    if not may_receive(endpoint, event_name):
        raise ResourceConflict(f"The webhook endpoint is not subscribed to {event_name}.")


def decide_retry(
    delivery: Delivery,
    endpoint: Endpoint,
    job: Job | None,
    mode: str,
    *,
    now: Instant,
    trigger: Literal["retry", "resend"] = "retry",
) -> Decision[Delivery]:
    """Put a delivery back with its full budget of attempts (interface "Errors", `conflict`).

    `job` is the delivery's own, if it still has one. Raises ResourceConflict.
    """
    require_active_subscriber(endpoint, delivery.event_name)
    parked = job is not None and job.due_at == NEVER
    if not DELIVERY.allows(delivery.status, trigger) and not parked:
        sources = [str(row.source) for row in DELIVERY.transitions if row.trigger == trigger]
        which = f"only {' or '.join(sources)} deliveries can be sent again"
        raise ResourceConflict(f"The delivery is {delivery.status}; {which}.")
    if job is not None and job.lease_until > now:
        raise ResourceConflict("An attempt of this delivery is in progress.")
    # A parked delivery may still be pending: its attempts had no outcome.
    is_pending = delivery.status == "pending"
    step = Step(delivery) if is_pending else _apply_trigger(delivery, trigger, now=now)
    changed = evolve(
        step.record,
        endpoint_revision=endpoint.revision,
        attempts=0,
        delivered_at_ms=None,
        updated_at_ms=now,
    )
    if job is not None:
        due = evolve(job, due_at=now, lease_until=0, claims=0, failures=0)
        return Decision(changed, holds=(endpoint,), replaces=(changed, due))
    changed = evolve(changed, round=delivery.round + 1)
    fresh = attempt_job(changed, mode, now=now)
    return Decision(changed, holds=(endpoint,), replaces=(changed,), inserts=(fresh,))


def _apply_trigger(
    delivery: Delivery, trigger: str, *, now: Instant, **changes: Any
) -> Step[Delivery]:
    row = DELIVERY.step(delivery.status, trigger)
    changes = {"next_attempt_at_ms": None, "failure": ENDS_UNASKED.get(trigger), **changes}
    return Step(evolve(delivery, status=_STATUSES[row.target], updated_at_ms=now, **changes))
