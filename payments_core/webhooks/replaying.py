"""Events looked at again and sent again: tests, resends and recoveries (contract §8).

What is sent again keeps its event id, delivery id and body, by which receivers know it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import attrs

from payments_core.clock import DAY, SECOND, Instant
from payments_core.engine.decision import Decision, Follow, held
from payments_core.engine.events import TEST, Event
from payments_core.engine.idempotency.record import Idempotent
from payments_core.engine.identifiers import Draw
from payments_core.engine.ports import Ports
from payments_core.errors import Conflicting, NotFound, ValidationFailed
from payments_core.storage.jobs import Job
from payments_core.storage.port import Page, Position, Snapshot, Transaction, Where
from payments_core.tenants.authorization import Authority
from payments_core.webhooks.delivery import envelope
from payments_core.webhooks.lifecycle import (
    RECOVER,
    TASKS_QUEUE,
    attempt_job,
    decide_retry,
    new_delivery,
    require_wanting,
)
from payments_core.webhooks.record import ConsoleAction, Delivery, Endpoint, delivery_id

MOST_ENDPOINTS = 100
"""An event is resent to no more endpoints than this in one commit."""

LONGEST_RECOVERY_DAYS = 30
CLOCK_SKEW_MS = 30 * SECOND
"""How far the clocks of the processes may differ that stamp events and deliveries."""


@attrs.frozen
class Recovery:
    """A recovery that is under way."""

    endpoint_id: str
    since: Instant


class WebhookEvents:
    """The events of the environment of the authority that asks, and their sending again."""

    def __init__(self, ports: Ports) -> None:
        self._ledger = ports.committer
        self._storage = ports.storage
        self._clock = ports.clock

    def get(self, authority: Authority, event_id: str) -> Event:
        """An event. Raises NotFound."""
        return self._storage.read(authority.partition, lambda snapshot: _event(snapshot, event_id))

    def list(
        self,
        authority: Authority,
        *,
        account_id: str | None = None,
        where: Sequence[Where] = (),
        after: Position | None = None,
        limit: int = 50,
    ) -> Page[Event]:
        """Events, newest first, of one account or of all; `where` filters by their columns."""
        index = "newest" if account_id is None else "by_account"
        key = () if account_id is None else (account_id,)
        return self._storage.read(
            authority.partition,
            lambda snapshot: snapshot.find(
                Event, index, key, where=where, after=after, limit=limit
            ),
        )

    def test(
        self, authority: Authority, endpoint_id: str, *, idempotent: Idempotent | None = None
    ) -> Delivery:
        """Send `webhook.test` to the endpoint and no other, whatever it subscribed to.

        Raises NotFound, and Conflicting where the endpoint is not active.
        """

        def decide(tx: Transaction, draw: Draw) -> Decision[Delivery]:
            endpoint = _held_endpoint(tx, endpoint_id)
            require_wanting(endpoint, TEST)
            now = self._clock.now()
            event = Event(
                id=draw.id("evt"),
                name=TEST,
                api_version=authority.api_version,
                created_at=now,
                payload={"webhookId": endpoint.id},
            )
            delivery = new_delivery(event, endpoint, envelope(event), now=now)
            job = attempt_job(delivery, authority.mode, now=now)
            # A row like any other, and not `events`: those fan out to every endpoint.
            inserts = (event, delivery, job, _told(draw, endpoint.id, "test", now))
            return Decision(delivery, holds=(endpoint,), inserts=inserts)

        return self._ledger.commit(authority, decide, idempotent=idempotent)

    def resend(
        self,
        authority: Authority,
        event_id: str,
        *,
        endpoint_id: str | None = None,
        idempotent: Idempotent | None = None,
    ) -> tuple[Delivery, ...]:
        """Deliver the event again, to one endpoint or to every active one that wants it.

        The deliveries that were put on their way; of all endpoints, those whose delivery is on
        its way already are passed over. Raises NotFound, and Conflicting where the named
        endpoint is not active or not subscribed or its delivery is under way, or where nothing
        is left to send.
        """
        event, seen = self._storage.read(
            authority.partition, lambda snapshot: _seen(snapshot, event_id, endpoint_id)
        )

        def decide(tx: Transaction, draw: Draw) -> Decision[tuple[Delivery, ...]]:
            now = self._clock.now()
            sent: list[Decision[Delivery]] = []
            for endpoint, delivery in seen:
                try:
                    sent.append(resent(tx, event, endpoint.id, delivery, authority.mode, now=now))
                except (Conflicting, NotFound):
                    if endpoint_id is not None:
                        raise
            if not sent:
                raise Conflicting(
                    f"No active webhook endpoint waits for {event.name}: none is subscribed, or "
                    "its delivery is on its way."
                )
            told = Decision(
                tuple(item.result for item in sent),
                inserts=(_told(draw, event.id, "resend", now),),
            )
            return told.joined(*sent)

        return self._ledger.commit(authority, decide, idempotent=idempotent)

    def recover(
        self,
        authority: Authority,
        endpoint_id: str,
        since: Instant,
        *,
        idempotent: Idempotent | None = None,
    ) -> Recovery:
        """Send the endpoint every event since then that it wants and was not delivered.

        A job does it, oldest event first. `since` is at most 30 days ago. Raises NotFound,
        ValidationFailed, and Conflicting where the endpoint is not active.
        """
        self._ledger.replay(authority, idempotent)  # before `since` has become too old
        now = self._clock.now()
        if since > now:
            raise ValidationFailed.at("since", "must not be in the future")
        if since < now - LONGEST_RECOVERY_DAYS * DAY:
            raise ValidationFailed.at("since", f"must be at most {LONGEST_RECOVERY_DAYS} days ago")

        def decide(tx: Transaction, draw: Draw) -> Decision[Recovery]:
            endpoint = _held_endpoint(tx, endpoint_id)
            if endpoint.status != "active":
                raise Conflicting(f"The webhook endpoint is {endpoint.status}; activate it first.")
            at = self._clock.now()
            return Decision(
                Recovery(endpoint.id, since),
                holds=(endpoint,),
                inserts=(_told(draw, endpoint.id, "recover", at),),
                jobs=(recovery_job(endpoint.id, (since, ""), asked_at=at, now=at),),
            )

        return self._ledger.commit(authority, decide, idempotent=idempotent)


def recovery_job(
    endpoint_id: str, after: tuple[Instant, str], *, asked_at: Instant, now: Instant
) -> Follow:
    """The job that goes through the events behind a position: their time and id."""
    arguments = {"after": str(after[0]), "after_id": after[1], "asked_at": str(asked_at)}
    return Follow(TASKS_QUEUE, RECOVER, f"recover:{endpoint_id}", now, endpoint_id, arguments)


def resent(
    tx: Transaction,
    event: Event,
    endpoint_id: str,
    seen: Delivery | None,
    mode: str,
    *,
    now: Instant,
    trigger: Literal["retry", "resend"] = "resend",
) -> Decision[Delivery]:
    """The event's delivery to an endpoint put on its way again, or made where there was none.

    `seen` is the delivery as it was read before, whose job tells which to lock. Raises NotFound,
    Conflicting.
    """
    endpoint = _held_endpoint(tx, endpoint_id)
    require_meant(event, endpoint)
    # job first, as its worker locks it
    job = None if seen is None else tx.get(Job, seen.job_id, for_update=True)
    delivery = tx.get(Delivery, delivery_id(event.id, endpoint_id), for_update=True)
    if delivery is None:
        made = new_delivery(event, endpoint, envelope(event), now=now)
        return Decision(made, holds=(endpoint,), inserts=(made, attempt_job(made, mode, now=now)))
    if seen is None or delivery.job_id != seen.job_id:
        raise Conflicting("The delivery was put on its way just now.")
    return decide_retry(delivery, endpoint, job, mode, now=now, trigger=trigger)


def require_meant(event: Event, endpoint: Endpoint) -> None:
    """Raise Conflicting unless the endpoint is active and the event is for it.

    A test is for the endpoint that it names, and for those that asked for tests by name.
    """
    require_wanting(endpoint, event.name)
    if event.name != TEST or event.payload["webhookId"] == endpoint.id:
        return
    if TEST not in endpoint.subscribed_events:
        raise Conflicting("The test was for another webhook endpoint.")


def _seen(
    snapshot: Snapshot, event_id: str, endpoint_id: str | None
) -> tuple[Event, Sequence[tuple[Endpoint, Delivery | None]]]:
    """The event, and the endpoints to try with the deliveries that they have had of it."""
    event = _event(snapshot, event_id)
    if endpoint_id is not None:
        endpoint = snapshot.get(Endpoint, endpoint_id)
        if endpoint is None:
            raise NotFound("webhook endpoint")
        endpoints = [endpoint]
    else:
        endpoints = [item for item in _active(snapshot) if is_meant(event, item)]
    if len(endpoints) > MOST_ENDPOINTS:
        raise Conflicting(
            f"More than {MOST_ENDPOINTS} endpoints are subscribed to {event.name}; name one."
        )
    return event, [
        (endpoint, snapshot.get(Delivery, delivery_id(event.id, endpoint.id)))
        for endpoint in endpoints
    ]


def _active(snapshot: Snapshot) -> list[Endpoint]:
    found: list[Endpoint] = []
    after: Position | None = None
    while True:
        page = snapshot.find(Endpoint, "by_status", ("active",), after=after, limit=100)
        found += page.records
        after = page.next
        if after is None:
            return found


def is_meant(event: Event, endpoint: Endpoint) -> bool:
    """Whether the endpoint is active and the event is for it."""
    try:
        require_meant(event, endpoint)
    except Conflicting:
        return False
    return True


def _event(snapshot: Snapshot, event_id: str) -> Event:
    event = snapshot.get(Event, event_id)
    if event is None:
        raise NotFound("event")
    return event


def _held_endpoint(tx: Transaction, endpoint_id: str) -> Endpoint:
    endpoint = held(tx, Endpoint, endpoint_id)
    if endpoint is None:
        raise NotFound("webhook endpoint")
    return endpoint


def _told(
    draw: Draw, subject: str, action: Literal["test", "resend", "recover"], now: Instant
) -> ConsoleAction:
    return ConsoleAction(
        id=draw.id("webhook_action"), subject=subject, action=action, created_at=now
    )
