"""One attempt at a delivery: prepare, send, decide the outcome.

The three are separate so that they can be done for one job or for many at once; the I/O in the
middle happens outside any transaction.
"""

from __future__ import annotations

import base64
import logging
import re
from collections.abc import Sequence
from typing import Any, Literal
from urllib.parse import quote, urlsplit

import attrs

from payments_core.clock import SECOND, Instant
from payments_core.credentials.keyring import KeyRing
from payments_core.engine.decision import Decision
from payments_core.engine.ports import Ports
from payments_core.errors import ValidationFailed, WebhookUrlNotAllowed
from payments_core.storage.jobs import NEVER, Job
from payments_core.storage.port import ClaimedJob, Snapshot
from payments_core.telemetry import AttemptOutcome
from payments_core.webhooks import signing
from payments_core.webhooks.destinations import (
    DestinationForbidden,
    ResolutionFailed,
    Resolver,
    ResolverOverloaded,
    parse_url,
    require_public_addresses,
    resolve_destination,
)
from payments_core.webhooks.dispatch.endpoint_concurrency import Target
from payments_core.webhooks.envelopes import CONTENT_TYPES
from payments_core.webhooks.handlers import SCHEME, EventHandlers, HandlersOverdue
from payments_core.webhooks.lifecycle import (
    OPEN_STATUSES,
    AttemptResult,
    abandon_reason,
    classify_status,
    decide_abandon,
    decide_attempt,
)
from payments_core.webhooks.record import Delivery, Endpoint
from payments_core.webhooks.settings import WebhookSettings
from payments_core.webhooks.transports.port import (
    MAX_RESPONSE_BODY_BYTES,
    Deadline,
    Transport,
    WebhookRequest,
)

SECRET_PURPOSE = "webhook signing secret"
MAX_CACHED_SECRETS = 1_000
POSTPONED_MS = 5 * SECOND
"""How long a delivery waits if its environment has too many name look-ups in progress."""

_CONTROL_CHARACTERS = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\x7f]")

_log = logging.getLogger(__name__)


@attrs.frozen
class PreparedDelivery:
    """A delivery as its attempt finds it; `abandon_reason` says why it is no longer needed."""

    claimed: ClaimedJob
    delivery: Delivery
    endpoint: Endpoint
    abandon_reason: Literal["close", "unsubscribe"] | None

    @property
    def target(self) -> Target:
        """The owner of the attempt, for sharing the capacity to send."""
        host = urlsplit(self.endpoint.url).hostname or ""
        return Target(self.claimed.job.lane, self.claimed.partition, host)


class AttemptRunner:
    """Attempts deliveries, over the ports."""

    def __init__(
        self,
        ports: Ports,
        transport: Transport,
        resolver: Resolver,
        settings: WebhookSettings,
        handlers: EventHandlers | None = None,
    ) -> None:
        self._handlers = handlers or EventHandlers()
        self._clock = ports.clock
        self._key_ring = ports.key_ring
        self._transport = transport
        self._resolver = resolver
        self._settings = settings
        self._telemetry = ports.telemetry
        self._opened: dict[tuple[str, int], Sequence[tuple[str, Instant]]] = {}

    def prepare(self, snapshot: Snapshot, claimed: Sequence[ClaimedJob]) -> list[PreparedDelivery]:
        """The deliveries of claimed jobs, except those that do not wait for them."""
        deliveries = snapshot.get_many(Delivery, {item.job.subject for item in claimed})
        endpoints = snapshot.get_many(
            Endpoint, {delivery.endpoint_id for delivery in deliveries.values()}
        )
        found = []
        for item in claimed:
            delivery = deliveries.get(item.job.subject)
            if delivery is None or not _is_for(item.job, delivery):
                continue
            endpoint = endpoints.get(delivery.endpoint_id)
            if endpoint is not None:
                found.append(
                    PreparedDelivery(item, delivery, endpoint, abandon_reason(delivery, endpoint))
                )
        return found

    def send(
        self, prepared: PreparedDelivery, lease_until: Instant | None = None
    ) -> AttemptResult | None:
        """Send the delivery, if it is still needed. Network failures raise nothing.

        None if the lease has ended meanwhile: another worker may have it. `lease_until` is its
        end, if it was renewed since the claim.
        """
        if prepared.abandon_reason is not None:
            return AttemptResult()
        if (lease_until or prepared.claimed.job.lease_until) <= self._clock.now():
            return None
        with self._telemetry.observe_attempt() as ended:
            attempt, outcome = self._attempt(prepared)
            ended(outcome)
            return attempt

    def _attempt(self, prepared: PreparedDelivery) -> tuple[AttemptResult, AttemptOutcome]:
        if prepared.endpoint.url.startswith(SCHEME):
            return self._attempt_handler(prepared)
        delivery, endpoint, settings = prepared.delivery, prepared.endpoint, self._settings
        deadline = Deadline.after(settings.attempt_s)
        try:
            destination = parse_url(endpoint.url, local_allowed=settings.local_allowed)
            addresses = require_public_addresses(
                resolve_destination(
                    self._resolver,
                    destination,
                    deadline.remaining_s(),
                    environment_id=prepared.claimed.partition,
                ),
                local_allowed=settings.local_allowed,
                extra=settings.refused_prefixes,
            )
        except (DestinationForbidden, WebhookUrlNotAllowed, ValidationFailed) as error:
            _log.warning("delivery %s is not allowed: %s", delivery.id, error)
            return AttemptResult(forbidden=True), "forbidden"
        except ResolverOverloaded as error:
            _log.info("delivery %s is postponed: %s", delivery.id, error)
            return AttemptResult(postponed=True), "postponed"
        except ResolutionFailed as error:
            _log.info("delivery %s was not sent: %s", delivery.id, error)
            failure = f"The name of the endpoint was not resolved: {error}."
            return AttemptResult(failure=failure), "unresolved"
        body = delivery.request_body.encode()
        outcome = self._transport.send(
            WebhookRequest(destination, self._build_headers(delivery, endpoint, body), body),
            addresses,
            deadline,
        )
        if outcome.status is None:
            _log.info("delivery %s got no response: %s", delivery.id, outcome.failure)
            failure = f"The endpoint did not answer: {outcome.failure}."
            return AttemptResult(failure=failure), "no_answer"
        attempt = AttemptResult(outcome.status, _decode_body(outcome.body), outcome.retry_after)
        return attempt, classify_status(outcome.status)

    def _attempt_handler(self, prepared: PreparedDelivery) -> tuple[AttemptResult, AttemptOutcome]:
        """Call a handler like a server: a function that returns has answered 204."""
        delivery = prepared.delivery
        try:
            failure = self._handlers.call(
                prepared.claimed.partition,
                prepared.endpoint.url,
                delivery.request_body,
                self._settings.attempt_s,
            )
        except HandlersOverdue:
            return AttemptResult(postponed=True), "postponed"
        if failure is not None:
            return AttemptResult(failure=failure), "failing"
        return AttemptResult(204), "delivered"

    def _open_valid_secrets(self, endpoint: Endpoint) -> list[str]:
        """The secrets that sign, newest first; opened once for each version of the endpoint."""
        key = (endpoint.id, endpoint.version)
        opened = self._opened.get(key)
        if opened is None:
            opened = open_secrets(self._key_ring, endpoint)
            if len(self._opened) >= MAX_CACHED_SECRETS:
                self._opened.clear()
            self._opened[key] = opened
        now = self._clock.now()
        return [secret for secret, until in opened if now < until]

    def _build_headers(self, delivery: Delivery, endpoint: Endpoint, body: bytes) -> dict[str, str]:
        secrets = self._open_valid_secrets(endpoint)
        # Receivers compare with their own clocks, whatever a sandbox's clock says.
        unix_s = self._clock.real_now() // SECOND
        headers = {
            "Content-Type": CONTENT_TYPES[delivery.body_format],
            "User-Agent": "payments-core-webhooks/1",
            "x-service-event": delivery.event_name,
            "x-service-event-id": delivery.event_id,
            "x-service-delivery": delivery.id,
            **signing.sign_headers(secrets, delivery.event_id, unix_s, body),
        }
        if delivery.account_id is not None:
            headers["x-service-account-id"] = delivery.account_id
        if delivery.external_user_id is not None:
            headers["x-service-external-user-id"] = quote(delivery.external_user_id, safe="")
        return headers

    def decide_outcome(
        self,
        current: Delivery | None,
        prepared: PreparedDelivery,
        attempt: AttemptResult,
        after: Endpoint | None,
    ) -> Decision[Any]:
        """The decision of an attempt, to be committed with the end of its job.

        `current` is the delivery, locked. `after` is the endpoint as it is after the attempt, from
        a snapshot: a plain `get` in the transaction may be older, and show an endpoint as
        closed that was reopened since.
        """
        if current is None or not _is_for(prepared.claimed.job, current):
            return Decision(None)
        now = self._clock.now()
        if prepared.abandon_reason is not None:  # so nothing was sent
            return decide_abandon(current, prepared.abandon_reason, now=now)
        if attempt.postponed:  # no room here, which does not count as an attempt
            return Decision(None, next_run_at=now + POSTPONED_MS)
        return decide_attempt(
            current,
            after or prepared.endpoint,
            attempt,
            now=now,
            real_now=self._clock.real_now(),
            max_attempts=self._settings.max_attempts,
        )


def seal_secret(key_ring: KeyRing, endpoint_id: str, secret: str) -> str:
    """A signing secret as it is stored, bound to its endpoint's id."""
    sealed = key_ring.seal(SECRET_PURPOSE, endpoint_id, secret.encode())
    return base64.b64encode(sealed).decode()


def open_secrets(key_ring: KeyRing, endpoint: Endpoint) -> list[tuple[str, Instant]]:
    """The secrets of an endpoint, newest first, each with its expiry. Raises SealBroken."""
    older = [
        (_open_sealed(key_ring, endpoint.id, item.sealed), item.until_ms)
        for item in endpoint.older_secrets
    ]
    return [(open_secret(key_ring, endpoint), NEVER), *older]


def open_secret(key_ring: KeyRing, endpoint: Endpoint) -> str:
    """An endpoint's newest signing secret. Raises SealBroken."""
    return _open_sealed(key_ring, endpoint.id, endpoint.sealed_secret)


def _open_sealed(key_ring: KeyRing, endpoint_id: str, sealed: str) -> str:
    return key_ring.open(SECRET_PURPOSE, endpoint_id, base64.b64decode(sealed)).decode()


def _is_for(job: Job, delivery: Delivery) -> bool:
    """Whether the delivery still waits for this job."""
    return delivery.status in OPEN_STATUSES and delivery.job_id == job.id


def _decode_body(body: bytes) -> str:
    """The start of a response as text that any storage keeps; a cut or invalid character stays
    visible.

    Control characters take six bytes each where they are stored.
    """
    text = body[:MAX_RESPONSE_BODY_BYTES].decode("utf-8", "replace")
    return _CONTROL_CHARACTERS.sub("\N{REPLACEMENT CHARACTER}", text)
