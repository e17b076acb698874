"""The health of an endpoint: to show, and as events for the environment's other endpoints.

The endpoint stores since when it fails and when that was last reported, so that it is reported at
most once an hour, in the commit of the attempt that shows it. Failing endpoints get no such events:
a hundred dead endpoints would make ten thousand deliveries of one event. The report that finds an
endpoint refusing after three days without a success disables it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Literal

import attrs

from payments_core.clock import DAY, HOUR, Instant
from payments_core.engine.decision import Decision, NewJob
from payments_core.engine.events import FAILING, RECOVERED, Event, NewEvent
from payments_core.evolve import evolve
from payments_core.storage.port import Snapshot, Where
from payments_core.webhooks.endpoint_fields import EndpointChanges
from payments_core.webhooks.lifecycle import (
    classify_status,
    decide_update,
    with_effective_status,
)
from payments_core.webhooks.record import Delivery, Endpoint

MIN_FAILED_ATTEMPTS = 2
"""The failed attempts of a delivery before a failure is reported: the first may be due to a restart
of the receiver. A delivery that is given up is reported at once."""

REPORT_INTERVAL_MS = HOUR
REFUSING_DISABLED_MS = 3 * DAY
"""An endpoint that works never, and refuses after this time, is disabled: a refusal is not tried
again, so nothing waits for it. One that does not answer stays active, since it may come back."""

OUTCOMES_SEARCHED = 20
"""The number of newest deliveries from which an endpoint is judged."""

DISABLED_WORDS = "It was disabled: for three days no delivery succeeded."
_OWN_FAMILY = "webhook."


@attrs.frozen(kw_only=True)
class EndpointHealth:
    """An endpoint, judged by the `searched` deliveries of it that changed last.

    `newest` is the newest of them that was delivered or failed, None without one. `failed` counts
    those that failed, with those that were abandoned.
    """

    endpoint: Endpoint
    newest: Delivery | None
    searched: int
    failed: int

    @property
    def status(self) -> Literal["ok", "failing", "unknown"]:
        """Whether the newest outcome is a delivery; `unknown` without an outcome.

        While deliveries that wait hide every outcome, the last report counts.
        """
        if self.newest is not None:
            return "ok" if self.newest.status == "delivered" else "failing"
        return "unknown" if self.endpoint.failing_since_ms is None else "failing"


def load_health(snapshot: Snapshot, endpoint: Endpoint) -> EndpointHealth:
    """The health of an endpoint."""
    page = snapshot.find(
        Delivery, "by_endpoint", (endpoint.id,), limit=OUTCOMES_SEARCHED, skip_damaged=True
    )
    deliveries = [with_effective_status(one, endpoint) for one in page.records]
    return EndpointHealth(
        endpoint=endpoint,
        newest=next((one for one in deliveries if one.status != "pending"), None),
        searched=len(deliveries),
        failed=sum(one.status in ("failed", "abandoned") for one in deliveries),
    )


def find_outcome(delivery: Delivery) -> Literal["works", "fails"] | None:
    """The health of the endpoint, as the latest attempt shows it.

    Deliveries of `webhook.*` never count as failures: one failure event would cause another.
    """
    if delivery.status == "delivered":
        return "works"
    if delivery.event_name.startswith(_OWN_FAMILY):
        return None
    if delivery.status == "failed" and delivery.attempts < MIN_FAILED_ATTEMPTS:
        return None
    return "fails"


def find_health_change(
    endpoint: Endpoint, attempted: Iterable[Delivery], now: Instant
) -> tuple[str, Delivery] | None:
    """The event that reports attempts at the endpoint, and the delivery that shows it.

    A failure comes before a success of the same moment.
    """
    if endpoint.status != "active":
        return None
    by_outcome = {find_outcome(delivery): delivery for delivery in attempted}
    if (failed := by_outcome.get("fails")) is not None:
        reported_at = endpoint.failing_told_at_ms
        is_due = reported_at is None or not 0 <= now - reported_at < REPORT_INTERVAL_MS
        return (FAILING, failed) if is_due else None
    if (worked := by_outcome.get("works")) is not None and endpoint.failing_since_ms is not None:
        return RECOVERED, worked
    return None


def decide_report(
    endpoint: Endpoint,
    change: tuple[str, Delivery],
    api_version: str,
    *,
    now: Instant,
    disables: bool = False,
) -> Decision[None]:
    """The event, and the endpoint with the time of the report; with `disables`, it is disabled."""
    name, delivery = change
    failure = delivery.failure
    jobs: tuple[NewJob, ...] = ()
    if name == FAILING:
        since = endpoint.failing_since_ms or now
        changed = evolve(endpoint, failing_since_ms=since, failing_told_at_ms=now)
        if disables:
            disabled = decide_update(changed, EndpointChanges(status="disabled"), now=now)
            failure = f"{failure or ''} {DISABLED_WORDS}".strip()
            changed, jobs = evolve(disabled.result, disabled_reason=failure), disabled.jobs
    else:
        changed = evolve(endpoint, failing_since_ms=None)
    payload = {
        "webhookId": endpoint.id,
        "deliveryId": delivery.id,
        "failureReason": failure,
    }
    event = NewEvent(name, payload, api_version)
    return Decision(None, replaces=(changed,), events=(event,), jobs=jobs)


def only_refuses(
    snapshot: Snapshot, endpoint: Endpoint, attempted: Collection[Delivery], now: Instant
) -> bool:
    """Whether attempts were refused, and none has succeeded for three days.

    The newest success counts too: a success beside a failure ends no report.
    """
    since = endpoint.failing_since_ms
    if since is None or since > now - REFUSING_DISABLED_MS:
        return False
    if not all(map(_is_refused, attempted)):
        return False
    worked = snapshot.find(
        Delivery,
        "by_endpoint",
        (endpoint.id,),
        where=(Where("status", "=", "delivered"),),
        limit=1,
        skip_damaged=True,
    )
    return all(one.updated_at_ms < since for one in worked.records)


def _is_refused(delivery: Delivery) -> bool:
    status = delivery.response_status
    return status is not None and classify_status(status) == "refused"


def reports_on(event: Event, endpoint: Endpoint) -> bool:
    """Whether the event reports that endpoint's own health, which is for the others."""
    is_health_event = event.name in (FAILING, RECOVERED)
    return is_health_event and event.payload["webhookId"] == endpoint.id


def may_receive(event: Event, endpoint: Endpoint) -> bool:
    """Whether the endpoint gets the event, if it has subscribed to it."""
    is_health_event = event.name in (FAILING, RECOVERED)
    is_failing = endpoint.failing_since_ms is not None
    return not (is_health_event and is_failing) and not reports_on(event, endpoint)
