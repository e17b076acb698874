"""Reports of the books, a page at a time, as JSON or CSV."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from payments_core.csv_text import CONTENT_TYPE, encode_csv
from payments_core.engine.idempotency.record import Response
from payments_core.storage.port import Page
from payments_core_http.calls import ApiCall
from payments_core_http.v2.reports import bodies, views

if TYPE_CHECKING:
    from payments_core.service import PaymentsService

ReportCall = ApiCall[None, bodies.ReportFields]


def read_balances(service: PaymentsService, call: ReportCall) -> Response:
    """The balances of each day."""
    report = call.resources.reports.list_balances
    return _respond(call, report, views.BalanceRowView, views.balance_row)


def read_transactions(service: PaymentsService, call: ReportCall) -> Response:
    """The movements."""
    report = call.resources.reports.list_transactions
    return _respond(call, report, views.TransactionRowView, views.transaction_row)


def read_payouts(service: PaymentsService, call: ReportCall) -> Response:
    """The payouts."""
    report = call.resources.reports.list_payouts
    return _respond(call, report, views.PayoutRowView, views.payout_row)


def _respond(
    call: ReportCall,
    report: Callable[..., Page[Any]],
    kind: type[views.ReportRow],
    render: Callable[[Any], views.ReportRow],
) -> Response:
    query = call.query
    first: str = getattr(query, "from")
    page = report(first, query.to, after=call.decode_position(), limit=query.limit)
    if query.format == "json":
        return call.respond_page(page, render)
    rows = (views.list_cells(render(record)) for record in page.records)
    name = f"{call.route.path.rpartition('/')[2]}-{first}-{query.to}.csv"
    headers = {
        "Content-Type": CONTENT_TYPE,
        "Content-Disposition": f'attachment; filename="{name}"',
    }
    cursor = call.page_fields(page.next)["nextCursor"]
    if cursor is not None:
        given = {"from": first, "to": query.to, "format": "csv", "limit": query.limit}
        headers["Link"] = f'<?{urlencode({**given, "cursor": cursor})}>; rel="next"'
    content = encode_csv(views.list_columns(kind), rows)
    return Response(call.route.success, content, call.caller.api_version, headers)
