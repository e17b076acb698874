"""The audit trail: who changed what in the environment."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

from payments_core.engine.audit import ActorType
from payments_core.engine.idempotency.record import Response
from payments_core_http.calls import PageCall
from payments_core_http.dashboard.rendering import PAGE_SIZE, List, render_page

if TYPE_CHECKING:
    from payments_core.service import PaymentsService

ACTOR_TYPES: tuple[ActorType, ...] = get_args(ActorType)
_TEXTS = ("actor", "operation", "object")
_MAX_CHARACTERS = 200


def list_entries(service: PaymentsService, call: PageCall) -> Response:
    """The entries, newest first."""
    given = {name: call.query.get(name, "").strip()[:_MAX_CHARACTERS] for name in _TEXTS}
    filters = {name: text for name, text in given.items() if text}
    actor_type = next((one for one in ACTOR_TYPES if one == call.query.get("actorType")), None)
    if actor_type is not None:
        filters["actorType"] = actor_type
    listed = List(call, filters)
    page = call.resources.audit.list(
        actor_type=actor_type,
        actor_id=given["actor"] or None,
        operation=given["operation"] or None,
        object_id=given["object"] or None,
        limit=PAGE_SIZE,
        after=listed.position,
    )
    return render_page(
        call,
        "audit.html",
        section="audit",
        entries=page.records,
        given=given,
        actor_type=actor_type or "",
        actor_types=ACTOR_TYPES,
        is_filtered=bool(filters),
        is_first=listed.is_first,
        next_page=listed.build_next(page.next),
    )
