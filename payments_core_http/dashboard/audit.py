"""The audit trail: who changed what in the environment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, get_args

from payments_core.engine.audit import ActorType, AuditEntry
from payments_core.engine.idempotency.record import Response
from payments_core.storage.port import Page, Position
from payments_core_http.calls import PageCall
from payments_core_http.dashboard.choices import find_choice
from payments_core_http.dashboard.lists import Filter, read_list
from payments_core_http.dashboard.rendering import render_page

if TYPE_CHECKING:
    from payments_core.service import PaymentsService

ACTOR_TYPES: tuple[ActorType, ...] = get_args(ActorType)
_FILTERS = (
    Filter("actorType", "Who", "choice", ACTOR_TYPES, every="Everybody"),
    Filter("actor", "Key or operator", "search"),
    Filter("operation", "Operation", "search"),
    Filter("object", "Object", "search"),
)


def list_entries(service: PaymentsService, call: PageCall) -> Response:
    """The entries, newest first."""
    return render_page(
        call, "audit.html", section="audit", listed=read_list(call, _read_page, _FILTERS)
    )


def _read_page(
    call: PageCall, filters: Mapping[str, str], after: Position | None, limit: int
) -> Page[AuditEntry]:
    return call.resources.audit.list(
        actor_type=find_choice(ACTOR_TYPES, filters.get("actorType")),
        actor_id=filters.get("actor"),
        operation=filters.get("operation"),
        object_id=filters.get("object"),
        limit=limit,
        after=after,
    )
