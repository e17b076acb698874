"""Reading and resending events: tests, resends and recoveries (contract §8).

A resent event keeps its event id, delivery id and body, by which receivers recognise it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import ClassVar, Literal

import attrs
from msgspec import UNSET, UnsetType

from payments_core.clock import DAY, SECOND, Instant, from_datetime
from payments_core.engine.decision import Decision, NewJob, lock_shared
from payments_core.engine.events import TEST, Event, EventName
from payments_core.engine.idempotency.record import IdempotencyKey
from payments_core.engine.identifiers import IdSequence
from payments_core.engine.ports import Ports
from payments_core.errors import NotFound, ResourceConflict, ValidationFailed
from payments_core.evolve import evolve
from payments_core.field_views import FieldView, instant_view
from payments_core.payments.record import Payment
from payments_core.storage.jobs import Job
from payments_core.storage.newest import find_newest, where_matches
from payments_core.storage.port import Page, Position, Snapshot, Transaction
from payments_core.tenants.authorization import Authority
from payments_core.tenants.idempotency import once_per_key
from payments_core.validation.fields import Id, PageLimit
from payments_core.webhooks.delivered import find_delivered
from payments_core.webhooks.envelopes import EventBodies
from payments_core.webhooks.feed import decide_append, sort_events
from payments_core.webhooks.health import reports_on
from payments_core.webhooks.lifecycle import (
    RECOVER,
    TASK_QUEUE_NAME,
    attempt_job,
    decide_retry,
    new_delivery,
    require_active_subscriber,
    with_effective_status,
)
from payments_core.webhooks.record import Delivery, Endpoint, delivery_id

MAX_RESEND_ENDPOINTS = 100
"""An event is resent to no more endpoints than this in one commit."""

MAX_EVENTS_LOOKED_AT = 2_000
"""The maximum number of events read to find those of one Payment."""

MAX_RECOVERY_DAYS = 30
MAX_CLOCK_SKEW_MS = 30 * SECOND
"""The maximum skew between the clocks that stamp events and deliveries."""


@attrs.frozen
class Recovery:
    """A recovery in progress.

    >>> shop.webhooks.recover(endpoint.id, endpoint.created_at)
    Recovery(endpoint_id='webhook_...', since_ms=...)
    """

    endpoint_id: str
    since_ms: Instant

    since: ClassVar[FieldView[datetime]] = instant_view("since_ms")


@attrs.frozen
class PaymentEvents:
    """Events of a Payment, oldest first; not `is_complete` if older ones may be missing."""

    events: tuple[Event, ...]
    is_complete: bool


class WebhookEvents:
    """Reads and resends the events of the caller's environment."""

    def __init__(self, ports: Ports) -> None:
        self._committer = ports.committer
        self._storage = ports.storage
        self._clock = ports.clock
        self._versions = ports.versions

    def get(self, authority: Authority, event_id: str) -> Event:
        """An event. Raises NotFound."""
        return self._storage.read(
            authority.partition, lambda snapshot: _get_event(snapshot, event_id)
        )

    def list(
        self,
        authority: Authority,
        *,
        account_id: str | None = None,
        name: EventName | None = None,
        created_after: datetime | None = None,
        created_before: datetime | None = None,
        after: Position | None = None,
        limit: PageLimit = 50,
    ) -> Page[Event]:
        """The events that match all filters, newest first.

        The window of creation includes `created_after`, and not `created_before`.
        """
        where = where_matches(name=name, created_after=created_after, created_before=created_before)
        index = "newest" if account_id is None else "by_account"
        key = () if account_id is None else (account_id,)
        return self._storage.read(
            authority.partition,
            lambda snapshot: find_newest(
                snapshot, Event, index, key, where=where, after=after, limit=limit
            ),
        )

    def get_with_deliveries(
        self, authority: Authority, event_id: str
    ) -> tuple[Event, tuple[tuple[Endpoint, Delivery | None], ...]]:
        """An event, and its deliveries with their endpoints, oldest endpoint first.

        An endpoint without its delivery got the event, and the delivery is deleted; one whose
        abandoned delivery is deleted is left out. Of more than MAX_RESEND_ENDPOINTS endpoints,
        only the oldest are read. Raises NotFound.
        """

        def load(snapshot: Snapshot) -> tuple[Event, tuple[tuple[Endpoint, Delivery | None], ...]]:
            event = _get_event(snapshot, event_id)
            endpoints = snapshot.find(
                Endpoint, "by_created", limit=MAX_RESEND_ENDPOINTS, skip_damaged=True
            ).records
            ids = {one.id: delivery_id(event.id, one.id) for one in endpoints}
            stored = snapshot.get_many(Delivery, list(ids.values()))
            absent = [(event.id, one) for one, id in ids.items() if id not in stored]
            over = find_delivered(snapshot, absent)
            seen: list[tuple[Endpoint, Delivery | None]] = []
            for endpoint in endpoints:
                delivery = stored.get(ids[endpoint.id])
                if delivery is not None:
                    seen.append((endpoint, with_effective_status(delivery, endpoint)))
                elif ids[endpoint.id] in over:
                    seen.append((endpoint, None))
            return event, tuple(seen)

        return self._storage.read(authority.partition, load)

    def list_of_payment(self, authority: Authority, payment: Payment) -> PaymentEvents:
        """The events of a Payment, oldest first; events of one moment by the status that they
        report.

        Events have no index by Payment: those of its lifetime are searched, but no more than
        MAX_EVENTS_LOOKED_AT.
        """
        end = payment.updated_at_ms + MAX_CLOCK_SKEW_MS

        def load(snapshot: Snapshot) -> PaymentEvents:
            found: list[Event] = []
            after: Position | None = (end, "")
            for _ in range(MAX_EVENTS_LOOKED_AT // 100):
                page = snapshot.find(Event, "newest", after=after, limit=100, skip_damaged=True)
                found += [one for one in page.records if one.payload.get("paymentId") == payment.id]
                after = page.next
                oldest = page.records[-1].created_at_ms if page.records else end
                if after is None or oldest < payment.created_at_ms:
                    return PaymentEvents(sort_events(found), is_complete=True)
            return PaymentEvents(sort_events(found), is_complete=False)

        return self._storage.read(authority.partition, load)

    @once_per_key
    def send_test(
        self, authority: Authority, endpoint_id: str, *, idempotency_key: IdempotencyKey = None
    ) -> Delivery:
        """Send `webhook.test` to this endpoint only, regardless of its subscriptions.

        Raises NotFound, and ResourceConflict if the endpoint is not active.
        """

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[Delivery]:
            endpoint = _lock_endpoint_shared(tx, endpoint_id)
            require_active_subscriber(endpoint, TEST)
            now = self._clock.now()
            event = Event(
                id=id_sequence.issue("evt"),
                name=TEST,
                api_version=authority.api_version,
                created_at_ms=now,
                payload={"webhookId": endpoint.id},
            )
            delivery = _make_delivery(event, endpoint, self._bodies(authority), now)
            job = attempt_job(delivery, authority.mode, now=now)
            # Not in the decision's `events`: those fan out to every endpoint.
            made = Decision(delivery, holds=(endpoint,), inserts=(event, delivery, job))
            return made.merge(decide_append(tx, id_sequence, [event]))

        return self._committer.commit(authority, decide, idempotent=idempotency_key)

    @once_per_key
    def resend(
        self,
        authority: Authority,
        event_id: str,
        *,
        endpoint_id: Id | UnsetType = UNSET,
        idempotency_key: IdempotencyKey = None,
    ) -> tuple[Delivery, ...]:
        """Deliver the event again, to one endpoint or to every active one that is subscribed.

        Returns the started deliveries; for all endpoints, those whose delivery is already pending
        are skipped. Raises ValidationFailed (also for None, which may be a lost value), NotFound,
        and ResourceConflict if the named endpoint is not active or not subscribed or its delivery
        is in progress, or if nothing is left to send.
        """
        bodies = self._bodies(authority)
        event, seen = self._storage.read(
            authority.partition,
            lambda snapshot: _read_resend_targets(snapshot, event_id, endpoint_id, bodies),
        )

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[tuple[Delivery, ...]]:
            now = self._clock.now()
            sent: list[Decision[Delivery]] = []
            for endpoint, delivery in seen:
                try:
                    sent.append(
                        decide_resend(
                            tx,
                            event,
                            endpoint.id,
                            delivery,
                            authority.mode,
                            bodies,
                            now=now,
                        )
                    )
                except (ResourceConflict, NotFound):
                    if endpoint_id is not UNSET:
                        raise
            if not sent:
                raise ResourceConflict(
                    f"No active webhook endpoint can get {event.name}: none is subscribed, or "
                    "its delivery is in progress."
                )
            return Decision(tuple(item.result for item in sent)).merge(*sent)

        return self._committer.commit(authority, decide, idempotent=idempotency_key)

    def _bodies(self, authority: Authority) -> EventBodies:
        return EventBodies(self._versions, authority.partition)

    @once_per_key
    def recover(
        self,
        authority: Authority,
        endpoint_id: str,
        since: datetime,
        *,
        idempotency_key: IdempotencyKey = None,
    ) -> Recovery:
        """Send the endpoint every subscribed event since then that was not delivered.

        A job does it, oldest event first. `since` is at most 30 days ago. Raises NotFound,
        ValidationFailed, and ResourceConflict if the endpoint is not active.
        """
        self._committer.replay(authority, idempotency_key)  # before `since` has become too old
        now = self._clock.now()
        since_ms = from_datetime(since)
        if since_ms > now:
            raise ValidationFailed.at("since", "must not be in the future")
        if since_ms < now - MAX_RECOVERY_DAYS * DAY:
            raise ValidationFailed.at("since", f"must be at most {MAX_RECOVERY_DAYS} days ago")

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[Recovery]:
            endpoint = _lock_endpoint_shared(tx, endpoint_id)
            if endpoint.status != "active":
                raise ResourceConflict(
                    f"The webhook endpoint is {endpoint.status}; activate it first."
                )
            at = self._clock.now()
            return Decision(
                Recovery(endpoint.id, since_ms),
                holds=(endpoint,),
                jobs=(recovery_job(endpoint.id, (since_ms, ""), asked_at=at, now=at),),
            )

        return self._committer.commit(authority, decide, idempotent=idempotency_key)


def recovery_job(
    endpoint_id: str, after: tuple[Instant, str], *, asked_at: Instant, now: Instant
) -> NewJob:
    """The job that goes through the events after a position: a time and an id."""
    arguments = {"after": str(after[0]), "after_id": after[1], "asked_at": str(asked_at)}
    return NewJob(TASK_QUEUE_NAME, RECOVER, f"recover:{endpoint_id}", now, endpoint_id, arguments)


def decide_resend(
    tx: Transaction,
    event: Event,
    endpoint_id: str,
    seen: Delivery | None,
    mode: str,
    bodies: EventBodies,
    *,
    now: Instant,
    trigger: Literal["retry", "resend"] = "resend",
) -> Decision[Delivery]:
    """The event's delivery to an endpoint, sent again, or created if there was none.

    `seen` is the delivery as it was read before, whose job says which to lock. Raises NotFound,
    ResourceConflict.
    """
    endpoint = _lock_endpoint_shared(tx, endpoint_id)
    _require_recipient(event, endpoint, bodies)
    # job first, as its worker locks it
    job = None if seen is None else tx.get(Job, seen.job_id, for_update=True)
    delivery = tx.get(Delivery, delivery_id(event.id, endpoint_id), for_update=True)
    if delivery is None:
        made = _make_delivery(event, endpoint, bodies, now)
        # Of an earlier one, which is deleted, a worker may still hold a job of the first rounds.
        made = evolve(made, round=1 + max(0, now - event.created_at_ms))
        return Decision(made, holds=(endpoint,), inserts=(made, attempt_job(made, mode, now=now)))
    if seen is None or delivery.job_id != seen.job_id:
        raise ResourceConflict("Another request has just sent this delivery.")
    return decide_retry(delivery, endpoint, job, mode, now=now, trigger=trigger)


def _make_delivery(event: Event, endpoint: Endpoint, bodies: EventBodies, now: Instant) -> Delivery:
    return new_delivery(event, endpoint, bodies.encode(event, endpoint.body_format), now=now)


def _require_recipient(event: Event, endpoint: Endpoint, bodies: EventBodies) -> None:
    """Raise ResourceConflict unless the endpoint is active and the event is for it.

    A test is for the endpoint that it names, and for endpoints subscribed to tests by name; the
    health of an endpoint is reported to the others.
    """
    require_active_subscriber(endpoint, event.name)
    if reports_on(event, endpoint):
        raise ResourceConflict(
            "The event is about this webhook endpoint: it is sent only to other endpoints."
        )
    if event.name == TEST and event.payload["webhookId"] == endpoint.id:
        return
    if event.name == TEST and TEST not in endpoint.subscribed_events:
        raise ResourceConflict("The test event is for another webhook endpoint.")
    if not bodies.satisfies(event, endpoint.filters):
        raise ResourceConflict("The event does not satisfy the filters of the webhook endpoint.")


def _read_resend_targets(
    snapshot: Snapshot, event_id: str, endpoint_id: str | UnsetType, bodies: EventBodies
) -> tuple[Event, Sequence[tuple[Endpoint, Delivery | None]]]:
    """The event, and the endpoints to try, with their deliveries of it."""
    event = _get_event(snapshot, event_id)
    if endpoint_id is not UNSET:
        endpoint = snapshot.get(Endpoint, endpoint_id)
        if endpoint is None:
            raise NotFound("webhook endpoint")
        endpoints = [endpoint]
    else:
        active = _find_active_endpoints(snapshot)
        endpoints = [item for item in active if is_recipient(event, item, bodies)]
    if len(endpoints) > MAX_RESEND_ENDPOINTS:
        raise ResourceConflict(
            f"More than {MAX_RESEND_ENDPOINTS} endpoints are subscribed to {event.name}; name one."
        )
    return event, [
        (endpoint, snapshot.get(Delivery, delivery_id(event.id, endpoint.id)))
        for endpoint in endpoints
    ]


def _find_active_endpoints(snapshot: Snapshot) -> list[Endpoint]:
    found: list[Endpoint] = []
    after: Position | None = None
    while True:
        page = snapshot.find(Endpoint, "by_status", ("active",), after=after, limit=100)
        found += page.records
        after = page.next
        if after is None:
            return found


def is_recipient(event: Event, endpoint: Endpoint, bodies: EventBodies) -> bool:
    """Whether the endpoint is active and the event is for it."""
    try:
        _require_recipient(event, endpoint, bodies)
    except ResourceConflict:
        return False
    return True


def _get_event(snapshot: Snapshot, event_id: str) -> Event:
    event = snapshot.get(Event, event_id)
    if event is None:
        raise NotFound("event")
    return event


def _lock_endpoint_shared(tx: Transaction, endpoint_id: str) -> Endpoint:
    endpoint = lock_shared(tx, Endpoint, endpoint_id)
    if endpoint is None:
        raise NotFound("webhook endpoint")
    return endpoint
