"""Rows of Payments."""

from __future__ import annotations

from payments_core import errors
from payments_core.errors import NotFound
from payments_core_http.routing import Route
from payments_core_http.v2 import payments, queries
from payments_core_http.v2.bodies import payments as bodies
from payments_core_http.v2.routes.requirements import PAYMENTS_KEY

_NEW_PAYMENT = (
    NotFound, errors.AmountOutOfRange, errors.UnsupportedChain, errors.UnsupportedAsset,
    errors.DestinationNotAllowed,
)  # fmt: skip

PAYMENTS = (
    Route(
        "POST", "/v2/payments", payments.create, needs=PAYMENTS_KEY,
        body=bodies.CreatePayment, success=201, idempotency="required", errors=_NEW_PAYMENT,
        summary="Create a receive Payment.",
    ),
    Route(
        "GET", "/v2/payments", payments.list_payments, needs=PAYMENTS_KEY,
        query=queries.Payments,
        summary="List Payments, newest first.",
    ),
    Route(
        "GET", "/v2/payments/{paymentId}", payments.read, needs=PAYMENTS_KEY, errors=(NotFound,),
        summary="Read a Payment.",
    ),
    Route(
        "POST", "/v2/payments/{paymentId}/cancel", payments.cancel, needs=PAYMENTS_KEY,
        errors=(NotFound, errors.InvalidState),
        summary="Cancel a Payment before funds move.",
    ),
)  # fmt: skip
