"""`payments admin audit`."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, get_args

import click

from payments_core.clock import parse_bound_or_none
from payments_core.engine.audit import ActorType, AuditEntry
from payments_core.service import PaymentsService
from payments_core.storage.port import Page, Position
from payments_core_http.cli.admin.service_command import (
    CommandResult,
    find_environment,
    format_time,
    with_service,
)

PAGE_SIZE = 100


@click.command()
@click.argument("environment", required=False)
@click.option(
    "--actor-type", type=click.Choice(get_args(ActorType)), help="Only this kind of actor."
)
@click.option("--actor", help="Only this actor: the id of a key, the name of an operator.")
@click.option("--operation", help="Only this operation, such as payments.refund.")
@click.option("--object", "object_id", help="Only changes of this object, such as a Payment's id.")
@click.option("--after", help="Only changes at this time or later; ISO 8601 with a zone.")
@click.option("--before", help="Only changes before this time.")
@click.option("--limit", type=click.IntRange(1, 10_000), default=50, show_default=True)
@with_service
def command(
    service: PaymentsService,
    mode: str,
    environment: str | None,
    actor_type: ActorType | None,
    actor: str | None,
    operation: str | None,
    object_id: str | None,
    after: str | None,
    before: str | None,
    limit: int,
) -> CommandResult:
    """Print who changed what in an environment, newest first.

    Without an ENVIRONMENT, print what belongs to none: refused log-ins with names that nobody has,
    and repairs.

    \b
    Examples:
      payments admin audit shop --object payment_01jx
      payments admin audit shop --operation dashboard.log_in --limit 10
    """
    filters = (actor_type, actor, operation, object_id, after, before)
    if environment is None:
        if any(filters):
            raise click.UsageError("Filters need an ENVIRONMENT.")
        trail = service.parts.audit_trail
        return _render_pages(
            lambda position, size: trail.list_deployment(limit=size, after=position), limit
        )
    shop = service.environment(find_environment(service, mode, environment).id)
    earliest, latest = _read_time("--after", after), _read_time("--before", before)

    def read(position: Position | None, size: int) -> Page[AuditEntry]:
        return shop.audit.list(
            actor_type=actor_type,
            actor_id=actor,
            operation=operation,
            object_id=object_id,
            created_after=earliest,
            created_before=latest,
            limit=size,
            after=position,
        )

    return _render_pages(read, limit)


def _render_pages(
    read: Callable[[Position | None, int], Page[AuditEntry]], limit: int
) -> CommandResult:
    """The first entries of a list, read a page at a time."""
    page = read(None, min(limit, PAGE_SIZE))
    found = list(page.records)
    while page.next is not None and len(found) < limit:
        page = read(page.next, min(limit - len(found), PAGE_SIZE))
        found += page.records
    return [_render_entry(entry) for entry in found]


def _read_time(option: str, text: str | None) -> datetime | None:
    try:
        return parse_bound_or_none(text)
    except ValueError:
        raise click.BadParameter("must be like 2026-11-30T09:00:00Z", param_hint=option) from None


def _render_entry(entry: AuditEntry) -> dict[str, Any]:
    return {
        "createdAt": format_time(entry.created_at_ms),
        "actorType": entry.actor_type,
        "actorId": entry.actor_id,
        "actorName": entry.actor_name,
        "operation": entry.operation,
        "objectId": entry.object_id,
        "relatedIds": list(entry.related_ids),
        "ipAddress": entry.address,
        "requestId": entry.request_id,
        "outcome": entry.outcome,
        "auditEntryId": entry.id,
    }
