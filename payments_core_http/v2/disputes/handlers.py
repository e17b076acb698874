"""Sessions and their disputes, for the partner's backend."""

from __future__ import annotations

from typing import TYPE_CHECKING

from payments_core.engine.idempotency.record import Response
from payments_core_http.calls import ApiCall
from payments_core_http.v2.disputes import bodies, views

if TYPE_CHECKING:
    from payments_core.service import PaymentsService


def read(service: PaymentsService, call: ApiCall[None, None]) -> Response:
    """A session with its dispute."""
    found = call.resources.sessions.read(call.path["sessionId"])
    return call.respond(views.session(found, call.request_id))


def flag(service: PaymentsService, call: ApiCall[bodies.FlagDispute, None]) -> Response:
    """The settled session, now disputed."""
    return call.run_idempotent(
        lambda idempotent: call.resources.sessions.flag_dispute(
            call.path["sessionId"],
            reason=call.body.reason,
            description=call.body.description,
            idempotency_key=idempotent,
        ),
        lambda found: views.flagged_session(found, call.request_id),
    )


def resolve(service: PaymentsService, call: ApiCall[bodies.ResolveDispute, None]) -> Response:
    """The session with its resolved dispute."""
    return call.run_idempotent(
        lambda idempotent: call.resources.sessions.resolve_dispute(
            call.path["sessionId"],
            resolution=call.body.resolution,
            note=call.body.note,
            idempotency_key=idempotent,
        ),
        lambda found: views.session(found, call.request_id),
    )
