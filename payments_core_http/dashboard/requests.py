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
from payments_core_http.dashboard.rendering import List, redirect, render_page
from payments_core_http.dashboard.request_copies import (
    BODY_FILE,
    list_variables,
    write_curl,
    write_pytest,
)

if TYPE_CHECKING:
    from payments_core.service import PaymentsService

LIST_SIZE = 50
OUTCOMES = ("succeeded", "failed")


def list_requests(service: PaymentsService, call: PageCall) -> Response:
    """The recorded requests, newest first."""
    filters = _read_filters(call)
    search = filters.get("search", "").strip()
    if is_identifier(search, "req"):
        return redirect(call, f"/dashboard/requests/{search}")
    listed = List(call, filters)
    page = _read_page(call, filters, listed.position, LIST_SIZE)
    return render_page(
        call,
        "requests.html",
        section="requests",
        requests=page.records,
        search=search,
        outcome=filters.get("outcome", ""),
        export=listed.export,
        outcomes=OUTCOMES,
        is_filtered=bool(filters),
        is_first=listed.is_first,
        next_page=listed.build_next(page.next),
    )


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


def _read_filters(call: PageCall) -> Mapping[str, str]:
    return {name: text for name in ("search", "outcome") if (text := call.query.get(name, ""))}


def _read_page(
    call: PageCall, filters: Mapping[str, str], after: Position | None, limit: int
) -> Page[LoggedRequest]:
    search, outcome = filters.get("search", "").strip(), filters.get("outcome", "")
    return call.resources.requests.list(
        lambda request: (
            search in request.path
            and (outcome not in OUTCOMES or (request.status >= 400) == (outcome == "failed"))
        ),
        limit=limit,
        after=after,
    )


_REQUESTS: Export[LoggedRequest] = Export(
    "requests",
    _read_filters,
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
