"""Refunds: requested and listed by the partner's backend."""

from __future__ import annotations

from typing import TYPE_CHECKING

from payments_core.engine.idempotency.record import Response
from payments_core.payments.refunding.operations import NewRefund
from payments_core_http.calls import ApiCall
from payments_core_http.v2.refunds import bodies, views
from payments_core_http.wire.query import PageQuery

if TYPE_CHECKING:
    from payments_core.service import PaymentsService


def create(service: PaymentsService, call: ApiCall[bodies.CreateRefund, None]) -> Response:
    """A refund whose amount is reserved, or one for each sender; the worker sends them."""
    body = call.body
    new = NewRefund(amount=body.amount, destination=body.destination, reason=body.reason)
    return call.run_idempotent(
        lambda idempotent: call.resources.payments.refund_all(
            call.path["paymentId"], new, idempotency_key=idempotent
        ),
        views.created_refunds,
    )


def list_refunds(service: PaymentsService, call: ApiCall[None, PageQuery]) -> Response:
    """The refunds of the Payment, newest first."""
    page = call.resources.payments.list_refunds(
        call.path["paymentId"], after=call.decode_position(), limit=call.query.limit
    )
    return call.respond_page(page, views.refund)
