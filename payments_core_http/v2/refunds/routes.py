"""Rows of refunds."""

from __future__ import annotations

from payments_core import errors
from payments_core.errors import NotFound
from payments_core_http.routing import ListOf, Route
from payments_core_http.v2.refunds import bodies, handlers, views
from payments_core_http.v2.requirements import PAYMENTS_KEY, VAULT_SPENDING
from payments_core_http.wire.query import PageQuery

REFUNDS = (
    Route(
        "POST", "/v2/payments/{paymentId}/refunds", handlers.create, needs=PAYMENTS_KEY,
        body=bodies.CreateRefund, success=201, idempotency="required",
        errors=(
            NotFound, errors.AmountOutOfRange, errors.InvalidState, errors.DestinationNotAllowed,
            errors.ScreeningRefused, errors.ResourceConflict, *VAULT_SPENDING,
        ),
        response=views.CreatedRefundView,
        summary="Refund received funds, in full or in part.",
    ),
    Route(
        "GET", "/v2/payments/{paymentId}/refunds", handlers.list_refunds, needs=PAYMENTS_KEY,
        query=PageQuery, errors=(NotFound,),
        response=ListOf(views.RefundView),
        summary="List the refunds of a Payment, newest first.",
    ),
)  # fmt: skip
