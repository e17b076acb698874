"""Payments, deposits and refunds, by v1's name for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from payments_core.engine.idempotency.record import Response
from payments_core.legacy.transactions.sources import Filters
from payments_core_http.calls import ApiCall
from payments_core_http.v1.transactions import bodies, views

if TYPE_CHECKING:
    from payments_core.service import PaymentsService


def read(service: PaymentsService, call: ApiCall[None, bodies.OneTransaction]) -> Response:
    """A transaction."""
    found = call.resources.legacy.read_transaction(call.query.transactionId)
    return call.respond(
        views.TransactionResponse(data=views.transaction(found), requestId=call.request_id)
    )


def list_(service: PaymentsService, call: ApiCall[None, bodies.TransactionsQuery]) -> Response:
    """A page of an account's transactions."""
    query = call.query
    found = call.resources.legacy.list_transactions(
        query.userId,
        Filters(type=query.type, status=query.status, chain_id=query.chainId),
        before=query.before,
        page=query.page,
        limit=query.limit,
    )
    data = views.transactions(found, page=query.page, limit=query.limit)
    return call.respond(views.TransactionsResponse(data=data, requestId=call.request_id))
