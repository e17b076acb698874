"""Partners' operations on their webhook endpoints (interface "Webhook console")."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from msgspec import UNSET, Meta

from payments_core.clock import SECOND
from payments_core.engine.decision import Decision
from payments_core.engine.events import EventName
from payments_core.engine.idempotency.record import IdempotencyKey
from payments_core.engine.identifiers import IdSequence
from payments_core.engine.ports import Ports
from payments_core.engine.remote_calls import RemoteCalls
from payments_core.errors import (
    NotFound,
    ResourceConflict,
    WebhookLimitReached,
    WebhookUrlNotAllowed,
)
from payments_core.evolve import evolve
from payments_core.storage.jobs import Job
from payments_core.storage.newest import where_matches
from payments_core.storage.port import (
    Page,
    Position,
    Snapshot,
    Transaction,
)
from payments_core.tenants.authorization import Authority
from payments_core.tenants.idempotency import once_per_key
from payments_core.validation.fields import PageLimit
from payments_core.webhooks.destinations import (
    Destination,
    DestinationForbidden,
    ResolutionFailed,
    Resolver,
    parse_url,
    require_public_addresses,
    resolve_destination,
)
from payments_core.webhooks.dispatch.attempt import seal_secret
from payments_core.webhooks.endpoint_fields import EndpointChanges, EndpointDescription
from payments_core.webhooks.envelopes import BodyFormat
from payments_core.webhooks.filters import EventFilter, EventFilters, check_filters
from payments_core.webhooks.health import EndpointHealth, load_health
from payments_core.webhooks.lifecycle import (
    decide_create,
    decide_retry,
    decide_rotate,
    decide_update,
    with_effective_status,
)
from payments_core.webhooks.record import (
    Delivery,
    DeliveryStatus,
    Endpoint,
    url_digest,
)
from payments_core.webhooks.settings import WebhookSettings
from payments_core.webhooks.signing import new_secret
from payments_core.webhooks.transports.resolver import BoundedResolver

RESOLVE_TIMEOUT_S = 1.0
MAX_RESOLVING_REQUESTS = 2
"""The maximum number of requests that wait for names at once: a quarter of a server's threads."""

MAX_OVERLAP_S = 7 * 24 * 3_600

WebhookUrl = Annotated[str, Meta(min_length=1, max_length=2_048)]
SubscribedEvents = Annotated[Sequence[EventName], Meta(max_length=100)]
OverlapInSeconds = Annotated[int, Meta(ge=0, le=MAX_OVERLAP_S)]


class WebhookEndpoints:
    """Endpoints and their deliveries, in the caller's environment."""

    def __init__(
        self, ports: Ports, resolver: Resolver, settings: WebhookSettings, calls: RemoteCalls
    ) -> None:
        self._committer = ports.committer
        self._storage = ports.storage
        self._clock = ports.clock
        self._key_ring = ports.key_ring
        self._versions = ports.versions
        self._resolver = BoundedResolver(resolver, MAX_RESOLVING_REQUESTS, calls)
        self._settings = settings
        self._entropy = ports.entropy

    @once_per_key
    def create(
        self,
        authority: Authority,
        *,
        url: WebhookUrl,
        description: EndpointDescription | None = None,
        subscribed_events: SubscribedEvents = (),
        filters: EventFilters = (),
        body_format: BodyFormat = "envelope",
        idempotency_key: IdempotencyKey = None,
    ) -> tuple[Endpoint, str]:
        """A new active endpoint, and its signing secret, which is shown this once.

        Raises ValidationFailed, WebhookUrlNotAllowed, WebhookUrlInUse, and WebhookLimitReached
        if the environment has its maximum of active endpoints. A name that does not resolve
        at once passes: every attempt resolves it again.
        """
        # before the name is resolved, which may give another result now
        self._committer.replay(authority, idempotency_key)
        filters = check_filters(filters, self._versions, authority.api_version)
        destination = parse_url(url, local_allowed=self._settings.local_allowed)
        self._require_room(authority)
        self._require_allowed(destination, authority.environment.id)
        return self._insert(
            authority,
            url,
            url_digest(destination.normalized_url),
            description=description,
            subscribed_events=subscribed_events,
            filters=filters,
            body_format=body_format,
            idempotency_key=idempotency_key,
        )

    def create_for_handler(
        self,
        authority: Authority,
        url: str,
        subscribed_events: Sequence[EventName],
        filters: tuple[EventFilter, ...],
    ) -> Endpoint:
        """A new active endpoint of a handler in this process, with filters that are checked; its
        URL leads nowhere outside.

        Raises WebhookUrlInUse, and WebhookLimitReached as `create` does.
        """
        self._require_room(authority)
        return self._insert(
            authority, url, url_digest(url), subscribed_events=subscribed_events, filters=filters
        )[0]

    def _insert(
        self,
        authority: Authority,
        url: str,
        digest: str,
        *,
        description: str | None = None,
        subscribed_events: Sequence[EventName],
        filters: tuple[EventFilter, ...] = (),
        body_format: BodyFormat = "envelope",
        idempotency_key: IdempotencyKey = None,
    ) -> tuple[Endpoint, str]:
        secret = new_secret(self._entropy)

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[tuple[Endpoint, str]]:
            id, now = id_sequence.issue("webhook"), self._clock.now()
            endpoint = Endpoint(
                id=id,
                url=url,
                url_digest=digest,
                description=description,
                subscribed_events=_each_once(subscribed_events),
                filters=filters,
                body_format=body_format,
                sealed_secret=seal_secret(self._key_ring, id, secret),
                created_at_ms=now,
                updated_at_ms=now,
            )
            return _with_secret(decide_create(endpoint), secret)

        return self._committer.commit(authority, decide, idempotent=idempotency_key)

    def get(self, authority: Authority, endpoint_id: str) -> Endpoint:
        """An endpoint. Raises NotFound."""
        return self._storage.read(
            authority.partition, lambda snapshot: _get_endpoint(snapshot, endpoint_id)
        )

    def list(
        self, authority: Authority, *, limit: PageLimit = 50, after: Position | None = None
    ) -> Page[Endpoint]:
        """The environment's endpoints, oldest first, archived ones too."""
        return self._storage.read(
            authority.partition, lambda snapshot: _find_endpoints(snapshot, limit, after)
        )

    def list_health(
        self, authority: Authority, *, limit: PageLimit = 50, after: Position | None = None
    ) -> Page[EndpointHealth]:
        """As `list`, each endpoint judged by its newest deliveries: one query for each."""

        def load(snapshot: Snapshot) -> Page[EndpointHealth]:
            page = _find_endpoints(snapshot, limit, after)
            return Page(tuple(load_health(snapshot, one) for one in page.records), page.next)

        return self._storage.read(authority.partition, load)

    @once_per_key
    def update(
        self,
        authority: Authority,
        endpoint_id: str,
        changes: EndpointChanges,
        *,
        idempotency_key: IdempotencyKey = None,
    ) -> Endpoint:
        """Change description, subscriptions, filters, format or status.

        Raises NotFound, ValidationFailed, InvalidState for an archived endpoint, WebhookUrlInUse,
        and WebhookLimitReached if it would be one active endpoint too many.
        """
        if changes.subscribed_events is not UNSET:
            changes = evolve(changes, subscribed_events=_each_once(changes.subscribed_events))
        if changes.filters is not UNSET:
            checked = check_filters(changes.filters, self._versions, authority.api_version)
            changes = evolve(changes, filters=checked)
        if changes.status == "active" and self.get(authority, endpoint_id).status != "active":
            self._committer.replay(authority, idempotency_key)  # it may meanwhile be full
            self._require_room(authority)

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[Endpoint]:
            endpoint = _lock_endpoint(tx, endpoint_id)
            now = self._clock.now()
            return decide_update(endpoint, changes, now=now)

        return self._committer.commit(authority, decide, idempotent=idempotency_key)

    @once_per_key
    def rotate_secret(
        self,
        authority: Authority,
        endpoint_id: str,
        *,
        overlap_s: OverlapInSeconds = 0,
        idempotency_key: IdempotencyKey = None,
    ) -> tuple[Endpoint, str]:
        """A new signing secret, shown this once; the previous one is invalid at once.

        With an overlap of up to seven days, deliveries carry a signature of each until it ends.
        Raises NotFound, ValidationFailed, InvalidState for an archived endpoint, ResourceConflict
        if too many secrets overlap.
        """
        secret = new_secret(self._entropy)

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[tuple[Endpoint, str]]:
            endpoint = _lock_endpoint(tx, endpoint_id)
            sealed = seal_secret(self._key_ring, endpoint.id, secret)
            now = self._clock.now()
            decision = decide_rotate(endpoint, sealed, now=now, overlap_ms=overlap_s * SECOND)
            return _with_secret(decision, secret)

        return self._committer.commit(authority, decide, idempotent=idempotency_key)

    def list_deliveries(
        self,
        authority: Authority,
        endpoint_id: str,
        *,
        status: DeliveryStatus | None = None,
        limit: PageLimit = 50,
        after: Position | None = None,
    ) -> tuple[Endpoint, Page[Delivery]]:
        """The endpoint and a page of its deliveries, most recently updated first.

        `status` compares the status as it is stored. Raises NotFound.
        """

        def read_page(snapshot: Snapshot) -> tuple[Endpoint, Page[Delivery]]:
            endpoint = _get_endpoint(snapshot, endpoint_id)
            page = snapshot.find(
                Delivery,
                "by_endpoint",
                (endpoint_id,),
                where=where_matches(status=status),
                after=after,
                limit=limit,
                skip_damaged=True,
            )
            seen = tuple(with_effective_status(delivery, endpoint) for delivery in page.records)
            return endpoint, Page(seen, page.next)

        return self._storage.read(authority.partition, read_page)

    def get_health(self, authority: Authority, endpoint_id: str) -> EndpointHealth:
        """An endpoint, judged by its newest deliveries. Raises NotFound."""
        return self._storage.read(
            authority.partition,
            lambda snapshot: load_health(snapshot, _get_endpoint(snapshot, endpoint_id)),
        )

    def get_delivery(
        self, authority: Authority, endpoint_id: str, delivery_id: str
    ) -> tuple[Endpoint, Delivery]:
        """An endpoint and one of its deliveries. Raises NotFound."""

        def load(snapshot: Snapshot) -> tuple[Endpoint, Delivery]:
            endpoint = _get_endpoint(snapshot, endpoint_id)
            delivery = _require_delivery_of(snapshot.get(Delivery, delivery_id), endpoint)
            return endpoint, with_effective_status(delivery, endpoint)

        return self._storage.read(authority.partition, load)

    @once_per_key
    def retry(
        self,
        authority: Authority,
        endpoint_id: str,
        delivery_id: str,
        *,
        idempotency_key: IdempotencyKey = None,
    ) -> Delivery:
        """Queue a failed or abandoned delivery again, with its full number of attempts.

        Raises NotFound, and ResourceConflict if the endpoint is not active or not subscribed, or
        the delivery is in another state or being attempted.
        """

        seen = self._storage.read(
            authority.partition,
            lambda snapshot: _require_delivery_of(
                snapshot.get(Delivery, delivery_id), _get_endpoint(snapshot, endpoint_id)
            ),
        )

        def decide(tx: Transaction, id_sequence: IdSequence) -> Decision[Delivery]:
            endpoint = _lock_endpoint(tx, endpoint_id)
            job = tx.get(Job, seen.job_id, for_update=True)  # job first, as its worker locks it
            delivery = _require_delivery_of(
                tx.get(Delivery, delivery_id, for_update=True), endpoint
            )
            if delivery.job_id != seen.job_id:
                raise ResourceConflict("Another request has just retried this delivery.")
            now = self._clock.now()
            return decide_retry(delivery, endpoint, job, authority.mode, now=now)

        return self._committer.commit(authority, decide, idempotent=idempotency_key)

    def _require_room(self, authority: Authority) -> None:
        """Raise WebhookLimitReached if the environment has its maximum of active endpoints.

        This limits the load of one environment on the others' deliveries: requests that come at
        the same moment may exceed it by their number.
        """
        most, after, active = self._settings.max_active_endpoints, None, 0
        while True:
            page = self._storage.read(
                authority.partition,
                lambda snapshot, after=after: snapshot.find(  # type: ignore[misc]
                    Endpoint, "by_status", ("active",), after=after, limit=100, skip_damaged=True
                ),
            )
            active += len(page.records)
            if active >= most:
                raise WebhookLimitReached(most)
            if page.next is None:
                return
            after = page.next

    def _require_allowed(self, destination: Destination, environment_id: str) -> None:
        settings = self._settings
        try:
            addresses = resolve_destination(
                self._resolver, destination, RESOLVE_TIMEOUT_S, environment_id=environment_id
            )
            require_public_addresses(
                addresses, local_allowed=settings.local_allowed, extra=settings.refused_prefixes
            )
        except ResolutionFailed:
            return
        except DestinationForbidden as error:
            # Do not reveal into which of our networks a name leads: no address here.
            raise WebhookUrlNotAllowed("it resolves to an address that is not public") from error


def _each_once(names: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))


def _find_endpoints(snapshot: Snapshot, limit: int, after: Position | None) -> Page[Endpoint]:
    return snapshot.find(Endpoint, "by_created", after=after, limit=limit, skip_damaged=True)


def _get_endpoint(snapshot: Snapshot, endpoint_id: str) -> Endpoint:
    return _require_found(snapshot.get(Endpoint, endpoint_id))


def _lock_endpoint(tx: Transaction, endpoint_id: str) -> Endpoint:
    return _require_found(tx.get(Endpoint, endpoint_id, for_update=True))


def _require_found(endpoint: Endpoint | None) -> Endpoint:
    if endpoint is None:
        raise NotFound("webhook endpoint")
    return endpoint


def _require_delivery_of(delivery: Delivery | None, endpoint: Endpoint) -> Delivery:
    if delivery is None or delivery.endpoint_id != endpoint.id:
        raise NotFound("delivery")
    return delivery


def _with_secret(decision: Decision[Endpoint], secret: str) -> Decision[tuple[Endpoint, str]]:
    return Decision(
        (decision.result, secret),
        inserts=decision.inserts,
        replaces=decision.replaces,
        refusals=decision.refusals,
    )
