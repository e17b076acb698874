"""The recorded API requests of programs: the list, and one request with copies of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from payments_core.engine.idempotency.record import Response
from payments_core.engine.identifiers import is_identifier
from payments_core.storage.port import Page, Position
from payments_core.tenants.request_log import LoggedRequest
from payments_core_http.calls import PageCall
from payments_core_http.dashboard.exports import Export, iso, stream
from payments_core_http.dashboard.lists import Filter, read_list
from payments_core_http.dashboard.rendering import redirect, render_page
from payments_core_http.dashboard.request_copies import (
    BODY_FILE,
    list_variables,
    write_curl,
    write_pytest,
)

if TYPE_CHECKING:
    from payments_core.service import PaymentsService

LIST_SIZE = 50
_FILTERS = (
    Filter("search", "Id, or part of the path", "search"),
    Filter("outcome", "Outcome", "choice", ("succeeded", "failed"), every="Every outcome"),
)


def list_requests(service: PaymentsService, call: PageCall) -> Response:
    """The recorded requests, newest first."""
    search = call.query.get("search", "").strip()
    if is_identifier(search, "req"):
        return redirect(call, f"/dashboard/requests/{search}")
    listed = read_list(call, _read_page, _FILTERS, limit=LIST_SIZE)
    return render_page(call, "requests.html", section="requests", listed=listed)


def export_requests(service: PaymentsService, call: PageCall) -> Response:
    """The recorded requests as CSV, without queries and bodies."""
    return stream(call, _REQUESTS)


def show_request(service: PaymentsService, call: PageCall) -> Response:
    """One request, and how to send it again."""
    request = call.resources.requests.read(call.path["requestId"])
    public_url = service.settings.public_url
    return render_page(
        call,
        "request.html",
        section="requests",
        request=request,
        variables=list_variables(request),
        body_file=BODY_FILE if request.body is None and request.body_bytes != 0 else None,
        curl=write_curl(request, public_url),
        pytest=write_pytest(request, public_url),
    )


def _read_page(
    call: PageCall, filters: Mapping[str, str], after: Position | None, limit: int
) -> Page[LoggedRequest]:
    search, outcome = filters.get("search", ""), filters.get("outcome")
    return call.resources.requests.list(
        lambda request: (
            search in request.path
            and (outcome is None or (request.status >= 400) == (outcome == "failed"))
        ),
        limit=limit,
        after=after,
    )


_REQUESTS: Export[LoggedRequest] = Export(
    "requests",
    _FILTERS,
    _read_page,
    {
        "id": lambda one: one.id,
        "at": lambda one: iso(one.at_ms),
        "method": lambda one: one.method,
        "path": lambda one: one.path,
        "status": lambda one: one.status,
        "errorCode": lambda one: one.error_code,
        "durationMs": lambda one: one.duration_ms,
    },
)
