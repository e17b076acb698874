"""Entries of the audit trail as the API returns them."""

from __future__ import annotations

from payments_core.clock import format_iso
from payments_core.engine.audit import AuditEntry
from payments_core_http.wire.classes import frozen_view


@frozen_view
class ActorView:
    """Who made a change."""

    type: str
    """`key`, `operator`, `client_session`, `payer`, `public` (a visitor of a shop's page),
    `program` (that embeds the service), `command_line`, `provider`, `system` (the service itself),
    or `unknown` (before the trail had actors)."""
    id: str | None
    """The id of the key or of the client session, the name of the operator or of another person,
    the kind of the provider, or the Payment of the payer; null if there is none."""
    name: str | None
    """The name of the key at that time, the account of the client session, the origin of the
    visitor's page, or the work of the service; null if there is none."""


@frozen_view
class AuditEntryView:
    """A change, by whom, from where, and its outcome. It has no credential and no body."""

    id: str
    """The id of the entry."""
    actor: ActorView
    """Who made the change."""
    operation: str
    """The resource and what was done, such as `payments.refund`; for work of the service itself,
    the name of the event that it caused."""
    objectId: str | None
    """What was changed: the first id that the request names, or the id of what it made; null for
    settings of the environment."""
    relatedIds: tuple[str, ...]
    """The other ids that the request names, and the id of what it made."""
    outcome: str
    """`succeeded`, or `refused` for a log-in."""
    ipAddress: str | None
    """The client's address; null if it is unknown, or if the change came from no request."""
    requestId: str | None
    """The `x-request-id` of the response; null if the change came from no request."""
    createdAt: str
    """When the change was made."""


def audit_entry(record: AuditEntry) -> AuditEntryView:
    """An entry."""
    return AuditEntryView(
        id=record.id,
        actor=ActorView(type=record.actor_type, id=record.actor_id, name=record.actor_name),
        operation=record.operation,
        objectId=record.object_id,
        relatedIds=record.related_ids,
        outcome=record.outcome,
        ipAddress=record.address,
        requestId=record.request_id,
        createdAt=format_iso(record.created_at_ms),
    )
