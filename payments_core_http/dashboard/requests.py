"""The recorded API requests of programs: the list, and one request with copies of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from payments_core.engine.idempotency.record import Response
from payments_core.engine.identifiers import is_identifier
from payments_core_http.calls import PageCall
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
    filters = {name: text for name in ("search", "outcome") if (text := call.query.get(name, ""))}
    search = filters.get("search", "").strip()
    if is_identifier(search, "req"):
        return redirect(call, f"/dashboard/requests/{search}")
    listed = List(call, filters)
    outcome = filters.get("outcome", "")
    page = call.resources.requests.list(
        lambda request: (
            search in request.path
            and (outcome not in OUTCOMES or (request.status >= 400) == (outcome == "failed"))
        ),
        limit=LIST_SIZE,
        after=listed.position,
    )
    return render_page(
        call,
        "requests.html",
        section="requests",
        requests=page.records,
        search=search,
        outcome=outcome,
        outcomes=OUTCOMES,
        is_filtered=bool(filters),
        is_first=listed.is_first,
        next_page=listed.build_next(page.next),
    )


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
