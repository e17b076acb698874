"""The audit trail."""

from __future__ import annotations

from typing import TYPE_CHECKING

from payments_core.clock import parse_bound_or_none
from payments_core.engine.idempotency.record import Response
from payments_core_http.calls import ApiCall
from payments_core_http.v2.audit import bodies, views

if TYPE_CHECKING:
    from payments_core.service import PaymentsService


def list_entries(
    service: PaymentsService, call: ApiCall[None, bodies.ListAuditEntries]
) -> Response:
    """The entries, newest first."""
    query = call.query
    page = call.resources.audit.list(
        actor_type=query.actorType,
        actor_id=query.actorId,
        operation=query.operation,
        object_id=query.objectId,
        created_after=parse_bound_or_none(query.createdAfter),
        created_before=parse_bound_or_none(query.createdBefore),
        limit=query.limit,
        after=call.decode_position(),
    )
    return call.respond_page(page, views.audit_entry)
