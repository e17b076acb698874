"""The request log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from payments_core.engine.idempotency.record import Response
from payments_core_http.calls import ApiCall
from payments_core_http.v2.requests import bodies, views

if TYPE_CHECKING:
    from payments_core.service import PaymentsService


def list_requests(service: PaymentsService, call: ApiCall[None, bodies.ListRequests]) -> Response:
    """The recorded requests, newest first."""
    status, path = (call.query.status or "").removesuffix("xx"), call.query.path or ""
    page = call.resources.requests.list(
        lambda request: str(request.status).startswith(status) and path in request.path,
        limit=call.query.limit,
        after=call.decode_position(),
    )
    return call.respond_page(page, views.request)
