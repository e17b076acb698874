"""Webhook endpoints and deliveries as they are stored (interface "Resources")."""

from __future__ import annotations

import hashlib
from base64 import urlsafe_b64encode
from datetime import datetime
from functools import lru_cache
from typing import ClassVar, Literal

import attrs

from payments_core.brief_repr import brief_repr
from payments_core.clock import Instant
from payments_core.field_views import FieldView, instant_view, optional_instant_view
from payments_core.storage.records import Attention, Collection, Index, Record, Unique
from payments_core.webhooks.envelopes import BodyFormat
from payments_core.webhooks.filters import EventFilter

EndpointStatus = Literal["active", "disabled", "archived"]
DeliveryStatus = Literal["pending", "failed", "delivered", "abandoned"]

ACTIVE_URL = "active_url"
_TIME_CHARACTERS = 8


@attrs.frozen(kw_only=True)
class OlderSecret:
    """A secret that a rotation replaced, sealed like the endpoint's own; it signs until `until`."""

    sealed: str = attrs.field(repr=False)
    until_ms: Instant

    until: ClassVar[FieldView[datetime]] = instant_view("until_ms")


@attrs.frozen(kw_only=True)
class FailedAttempt:
    """An attempt of a delivery that failed: `failure` says why in words, and `answer` is the
    beginning of what the endpoint answered, None without an answer."""

    __repr__ = brief_repr

    at_ms: Instant
    status: int | None
    failure: str
    answer: str | None = None

    at: ClassVar[FieldView[datetime]] = instant_view("at_ms")


@attrs.frozen(kw_only=True, slots=False)
class Endpoint(Record):
    """A partner's address for webhooks.

    `url_digest` represents the normalised URL, which may be too long for an index. No events in
    `subscribed_events` means every event; of those, it gets the ones that satisfy all `filters`, in
    bodies of `body_format`. `revision` rises when the endpoint stops needing
    some, so that earlier deliveries can be distinguished from later requests; and
    `closed_revision` is its value when the endpoint last closed. The secret
    is sealed to the id. `older_secrets` sign beside it until their ends, newest first.
    `failing_since` and `failing_told_at` belong to the failure reports of `health.py`.
    `disabled_reason` says why the service disabled the endpoint, None if its owner did.

    >>> endpoint = shop.on_event("stock", print, subscribed_events=("payment.succeeded",))
    >>> endpoint.status, endpoint.subscribed_events
    ('active', ('payment.succeeded',))
    """

    collection: ClassVar[Collection] = Collection(
        "webhook_endpoints",
        columns={"status": str, "created_at": int, "active_url": str, "attention": str},
        indexes=(
            Index("by_created", order=("created_at",)),
            Index("by_status", key=("status",), order=("created_at",)),
            Index("by_attention", key=("attention",), order=("created_at",)),
        ),
        uniques=(Unique(ACTIVE_URL, ("active_url",)),),
        schema=5,
    )

    url: str
    url_digest: str
    description: str | None = None
    subscribed_events: tuple[str, ...] = ()
    filters: tuple[EventFilter, ...] = ()
    body_format: BodyFormat = "envelope"
    status: EndpointStatus = "active"
    sealed_secret: str = attrs.field(repr=False)
    older_secrets: tuple[OlderSecret, ...] = ()
    revision: int = 1
    closed_revision: int = 0
    failing_since_ms: Instant | None = None
    failing_told_at_ms: Instant | None = None
    disabled_reason: str | None = None
    created_at_ms: Instant
    updated_at_ms: Instant

    failing_since: ClassVar[FieldView[datetime | None]] = optional_instant_view("failing_since_ms")
    failing_told_at: ClassVar[FieldView[datetime | None]] = optional_instant_view(
        "failing_told_at_ms"
    )
    created_at: ClassVar[FieldView[datetime]] = instant_view("created_at_ms")
    updated_at: ClassVar[FieldView[datetime]] = instant_view("updated_at_ms")

    @property
    def active_url(self) -> str | None:
        """The unique key among active endpoints of the environment."""
        return self.url_digest if self.status == "active" else None

    @property
    def attention(self) -> Attention | None:
        """Whether it fails, as was reported, or was disabled by the service."""
        is_failing = self.status == "active" and self.failing_since_ms is not None
        was_disabled = self.status == "disabled" and self.disabled_reason is not None
        return "needed" if is_failing or was_disabled else None

    def valid_older_secrets(self, now: Instant) -> tuple[OlderSecret, ...]:
        """The older secrets that still sign, newest first."""
        return tuple(older for older in self.older_secrets if now < older.until_ms)

    def subscribes(self, event_name: str) -> bool:
        """Whether it is subscribed to events of that name."""
        return not self.subscribed_events or event_name in self.subscribed_events


@attrs.frozen(kw_only=True, slots=False)
class Delivery(Record):
    """One event on its way to one endpoint. `request_body` is the exact text of every attempt,
    and `failure` says in words why the last one failed, or why there was none. `failed_attempts`
    are the newest that failed, oldest first, also those before a retry.

    `round` counts the delivery's jobs: each has its own id; otherwise a worker that
    comes back late could mistake a new job for the one that it had claimed.

    >>> sent = shop.webhooks.test(endpoint.id)
    >>> sent.event_name, sent.status
    ('webhook.test', 'pending')
    """

    collection: ClassVar[Collection] = Collection(
        "webhook_deliveries",
        columns={
            "endpoint_id": str,
            "event_id": str,
            "status": str,
            "created_at": int,
            "updated_at": int,
        },
        indexes=(
            Index("by_endpoint", key=("endpoint_id",), order=("updated_at",), descending=True),
            Index("by_status", key=("endpoint_id", "status"), order=("created_at",)),
        ),
        uniques=(Unique("event_endpoint", ("event_id", "endpoint_id"), is_fixed=True),),
        schema=4,
    )

    endpoint_id: str
    endpoint_revision: int
    event_id: str
    event_name: str
    account_id: str | None = None
    external_user_id: str | None = None
    status: DeliveryStatus = "pending"
    round: int = 1
    attempts: int = 0
    response_status: int | None = None
    request_body: str
    body_format: BodyFormat = "envelope"
    response_body: str | None = None
    failure: str | None = None
    failed_attempts: tuple[FailedAttempt, ...] = ()
    next_attempt_at_ms: Instant | None = None
    delivered_at_ms: Instant | None = None
    created_at_ms: Instant
    updated_at_ms: Instant

    next_attempt_at: ClassVar[FieldView[datetime | None]] = optional_instant_view(
        "next_attempt_at_ms"
    )
    delivered_at: ClassVar[FieldView[datetime | None]] = optional_instant_view("delivered_at_ms")
    created_at: ClassVar[FieldView[datetime]] = instant_view("created_at_ms")
    updated_at: ClassVar[FieldView[datetime]] = instant_view("updated_at_ms")

    @property
    def job_id(self) -> str:
        """The id of the job that attempts it."""
        return _derive_id("job", self.event_id, f"{self.endpoint_id}/{self.round}")


def delivery_id(event_id: str, endpoint_id: str) -> str:
    """The id of the one delivery of an event to an endpoint."""
    return _derive_id("delivery", event_id, endpoint_id)


@lru_cache(maxsize=4_096)
def _derive_id(prefix: str, event_id: str, rest: str) -> str:
    """An id that is fixed beforehand: inserting it again after a crash repeats nothing.

    It begins with the event's time, as ids do, and continues with 96 bits of a digest.
    """
    moment = event_id.removeprefix("evt_")[:_TIME_CHARACTERS]
    digest = hashlib.sha256(f"{prefix}/{event_id}/{rest}".encode()).digest()
    return f"{prefix}_{moment}{urlsafe_b64encode(digest[:12]).decode()}"


def url_digest(normal_url: str) -> str:
    """The digest of a normalised URL for the index."""
    return hashlib.sha256(normal_url.encode()).hexdigest()
