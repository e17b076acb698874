"""The jobs of webhooks: fan an event out, attempt a delivery, abandon what is no longer wanted.

Each does its I/O outside any transaction and commits what came of it with the job's own end.
A crash in between makes the job due again: ids that are fixed beforehand make a second fan-out
repeat nothing, and a second attempt repeats the same delivery id, event id and body.
"""

from __future__ import annotations

import base64
import logging
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any
from urllib.parse import quote

import attrs
import msgspec

from payments_core.clock import MINUTE, SECOND, Clock, iso
from payments_core.credentials.keyring import KeyRing
from payments_core.decision import FAN_OUT, Decision, Ledger, Scope
from payments_core.errors import ValidationFailed, WebhookUrlNotAllowed
from payments_core.events import Event
from payments_core.identifiers import Draw
from payments_core.jobs.record import Job
from payments_core.jobs.worker import Handler, Queue
from payments_core.storage.port import Claimed, Position, Snapshot, Storage, Transaction
from payments_core.storage.records import R
from payments_core.tenants.record import Environment
from payments_core.webhooks import signing
from payments_core.webhooks.destinations import (
    DestinationForbidden,
    ResolutionFailed,
    Resolver,
    parse_url,
    vet,
)
from payments_core.webhooks.lifecycle import (
    ABANDON,
    DELIVER,
    OPEN,
    QUEUE,
    Attempt,
    attempt_job,
    decide_abandon,
    decide_attempt,
    new_delivery,
    unwanted,
)
from payments_core.webhooks.record import Delivery, Endpoint, delivery_id
from payments_core.webhooks.settings import WebhookSettings
from payments_core.webhooks.transports.port import KEPT_BYTES, Deadline, Request, Transport

SECRET_PURPOSE = "webhook signing secret"
PAGE = 50

_log = logging.getLogger(__name__)

WEBHOOKS = Queue(QUEUE, slots=1, lease_ms=1 * MINUTE, stops=False, threads=3)
"""The queue of these jobs. The lease outlasts an attempt by far; a parked delivery stops none.
An endpoint has one thread at a time, so that one that hangs leaves some for the others; and all
endpoints together leave threads of a process for the other queues."""


class WebhookDelivery:
    """The handlers, over their ports."""

    def __init__(
        self,
        ledger: Ledger,
        storage: Storage,
        clock: Clock,
        key_ring: KeyRing,
        transport: Transport,
        resolver: Resolver,
        mode: str,
        settings: WebhookSettings,
    ) -> None:
        self._ledger = ledger
        self._storage = storage
        self._clock = clock
        self._key_ring = key_ring
        self._transport = transport
        self._resolver = resolver
        self._mode = mode
        self._settings = settings

    def handlers(self) -> Mapping[str, Handler]:
        """The handler of each kind of job."""
        return {FAN_OUT: self.fan_out, DELIVER: self.deliver, ABANDON: self.abandon}

    # An event to its endpoints.

    def fan_out(self, claimed: Claimed) -> None:
        """One delivery, and the job to attempt it, for each active endpoint that subscribed."""
        scope = Scope(claimed.partition, self._mode)
        event, environment = self._storage.read(
            claimed.partition,
            lambda snapshot: (
                snapshot.get(Event, claimed.job.subject),
                snapshot.get(Environment, claimed.partition),
            ),
        )
        off = environment is not None and "webhooks" not in environment.products
        if event is None or off:  # a product that is off makes no deliveries; the event stays
            self._ledger.finish(claimed)
            return
        body = envelope(event)
        for endpoints, last in self._pages(claimed.partition, Endpoint, "by_status", "active"):
            wanting = [item for item in endpoints if item.subscribes(event.name)]
            self._ledger.commit(
                scope,
                partial(self._spread, event, wanting, body),
                claimed=claimed if last else None,
            )

    def _spread(
        self, event: Event, wanting: list[Endpoint], body: str, tx: Transaction, draw: Draw
    ) -> Decision[None]:
        now = self._clock.now()
        new = [
            new_delivery(event, endpoint, body, now=now)
            for endpoint in wanting
            if tx.get(Delivery, delivery_id(event.id, endpoint.id), for_update=True) is None
        ]
        jobs = [attempt_job(delivery, self._mode, now=now) for delivery in new]
        return Decision(None, inserts=(*new, *jobs))

    # A delivery to its endpoint.

    def deliver(self, claimed: Claimed) -> None:
        """Attempt a delivery once, unless it has ended or is no longer wanted."""
        found = self._storage.read(
            claimed.partition, lambda snapshot: _with_endpoint(snapshot, claimed.job.subject)
        )
        if found is None or not _is_for(claimed.job, found[0]):
            self._ledger.finish(claimed)
            return
        delivery, endpoint = found
        why = unwanted(delivery, endpoint)
        attempt = Attempt() if why else self._attempt(delivery, endpoint)
        # As it is after the attempt, from a snapshot: a plain `get` in the transaction may be
        # older, and say that the endpoint is closed which has come back since.
        after = self._storage.read(
            claimed.partition, lambda snapshot: snapshot.get(Endpoint, endpoint.id)
        )

        def decide(tx: Transaction, draw: Draw) -> Decision[Any]:
            current = tx.get(Delivery, delivery.id, for_update=True)
            if current is None or not _is_for(claimed.job, current):
                return Decision(None)
            now = self._clock.now()
            if why is not None:  # so nothing was sent
                return decide_abandon(current, why, now=now)
            return decide_attempt(
                current,
                after or endpoint,
                attempt,
                now=now,
                real_now=self._clock.real(),
                max_attempts=self._settings.max_attempts,
            )

        self._ledger.commit(Scope(claimed.partition, self._mode), decide, claimed=claimed)

    def _attempt(self, delivery: Delivery, endpoint: Endpoint) -> Attempt:
        settings = self._settings
        deadline = Deadline.after(settings.attempt_s)
        try:
            target = parse_url(endpoint.url, local_allowed=settings.local_allowed)
            addresses = vet(
                self._resolver.resolve(target.host, target.port, deadline.remaining_s()),
                local_allowed=settings.local_allowed,
                extra=settings.refused_prefixes,
            )
        except (DestinationForbidden, WebhookUrlNotAllowed, ValidationFailed) as error:
            _log.warning("delivery %s may not be sent: %s", delivery.id, error)
            return Attempt(forbidden=True)
        except ResolutionFailed as error:
            _log.info("delivery %s was not sent: %s", delivery.id, error)
            return Attempt()
        body = delivery.request_body.encode()
        outcome = self._transport.send(
            Request(target, self._headers(delivery, endpoint, body), body), addresses, deadline
        )
        if outcome.status is None:
            _log.info("delivery %s has no answer: %s", delivery.id, outcome.failure)
            return Attempt()
        return Attempt(outcome.status, _text(outcome.body), outcome.retry_after)

    def _headers(self, delivery: Delivery, endpoint: Endpoint, body: bytes) -> dict[str, str]:
        secret = open_secret(self._key_ring, endpoint)
        # Receivers compare with their own clocks, whatever a sandbox's clock says.
        unix_s = self._clock.real() // SECOND
        headers = {
            "Content-Type": "application/json",
            "User-Agent": "payments-core-webhooks/1",
            "x-service-event": delivery.event_name,
            "x-service-event-id": delivery.event_id,
            "x-service-delivery": delivery.id,
            "x-service-timestamp": str(unix_s),
            signing.HEADER: signing.signature_header(secret, unix_s, body),
        }
        if delivery.account_id is not None:
            headers["x-service-account-id"] = delivery.account_id
        if delivery.external_user_id is not None:
            headers["x-service-external-user-id"] = quote(delivery.external_user_id, safe="")
        return headers

    # What an endpoint no longer wants.

    def abandon(self, claimed: Claimed) -> None:
        """Abandon the deliveries that were on their way when an endpoint stopped wanting them.

        One that is being attempted is left to its attempt, which asks for itself.
        """
        for status in OPEN:
            key = (claimed.job.subject, status)
            for deliveries, _ in self._pages(claimed.partition, Delivery, "by_status", *key):
                for delivery in deliveries:
                    self._abandon_one(claimed, delivery)
        self._ledger.finish(claimed)

    def _abandon_one(self, claimed: Claimed, seen: Delivery) -> None:
        arguments = claimed.job.arguments
        closed = arguments["status"] != "active"
        kept = arguments["kept"].split(",")
        if seen.endpoint_revision >= int(arguments["revision"]):
            return  # made, or asked for again, since
        if not closed and seen.event_name in kept:
            return

        def decide(tx: Transaction, draw: Draw) -> Decision[Any]:
            job = tx.get(Job, seen.job_id, for_update=True)  # job first, as its worker locks it
            delivery = tx.get(Delivery, seen.id, for_update=True)
            now = self._clock.now()
            attempted = job is not None and job.lease_until > now
            if delivery is None or delivery.version != seen.version or attempted:
                return Decision(None)
            decision = decide_abandon(delivery, "close" if closed else "unsubscribe", now=now)
            return attrs.evolve(decision, deletes=() if job is None else (job,))

        self._ledger.commit(Scope(claimed.partition, self._mode), decide)

    def _pages(
        self, partition: str, kind: type[R], index: str, *key: str
    ) -> Iterator[tuple[tuple[R, ...], bool]]:
        """Every page of an index, and whether it is the last.

        Each comes from a snapshot: a `find` inside a transaction could miss what is new.
        """
        after: Position | None = None
        while True:
            page = self._storage.read(
                partition,
                lambda snapshot, after=after: snapshot.find(  # type: ignore[misc]
                    kind, index, key, after=after, limit=PAGE
                ),
            )
            yield page.records, page.next is None
            if page.next is None:
                return
            after = page.next


def envelope(event: Event) -> str:
    """The body of an event's deliveries (interface "Events", envelope)."""
    return msgspec.json.encode(
        {
            "id": event.id,
            "name": event.name,
            "apiVersion": event.api_version,
            "createdAt": iso(event.created_at),
            "payload": event.payload,
        }
    ).decode()


def seal_secret(key_ring: KeyRing, endpoint_id: str, secret: str) -> str:
    """A signing secret as it is stored, bound to its endpoint's id."""
    sealed = key_ring.seal(SECRET_PURPOSE, endpoint_id, secret.encode())
    return base64.b64encode(sealed).decode()


def open_secret(key_ring: KeyRing, endpoint: Endpoint) -> str:
    """An endpoint's signing secret. Raises SealBroken."""
    sealed = base64.b64decode(endpoint.sealed_secret)
    return key_ring.open(SECRET_PURPOSE, endpoint.id, sealed).decode()


def _with_endpoint(snapshot: Snapshot, delivery_id: str) -> tuple[Delivery, Endpoint] | None:
    delivery = snapshot.get(Delivery, delivery_id)
    endpoint = None if delivery is None else snapshot.get(Endpoint, delivery.endpoint_id)
    return None if delivery is None or endpoint is None else (delivery, endpoint)


def _is_for(job: Job, delivery: Delivery) -> bool:
    """Whether the delivery still waits for this very job."""
    return delivery.status in OPEN and delivery.job_id == job.id


def _text(body: bytes) -> str:
    """The start of a response as text that any storage keeps; a cut or odd character shows."""
    return body[:KEPT_BYTES].decode("utf-8", "replace").replace("\0", "\N{REPLACEMENT CHARACTER}")
