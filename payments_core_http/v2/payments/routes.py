"""Rows of Payments."""

from __future__ import annotations

from payments_core import errors
from payments_core.errors import NotFound
from payments_core_http.routing import ListOf, Route
from payments_core_http.v2.payments import bodies, receipt_views, views
from payments_core_http.v2.payments import handlers as payments
from payments_core_http.v2.refunds.routes import REFUNDS
from payments_core_http.v2.requirements import PAYMENTS_KEY, VAULT_SPENDING
from payments_core_http.wire.query import PageQuery

_CREATION_ERRORS = (
    NotFound, errors.AmountOutOfRange, errors.UnsupportedChain, errors.UnsupportedAsset,
    errors.DestinationNotAllowed, errors.CapabilityNotActive, errors.AccountSuspended,
    errors.InvalidState, *VAULT_SPENDING,
)  # fmt: skip

PAYMENTS = (
    Route(
        "POST", "/v2/payments", payments.create, needs=PAYMENTS_KEY,
        body=bodies.AnyPayment, success=201, idempotency="required", errors=_CREATION_ERRORS,
        response=views.CreatedPaymentView | views.PaymentView,
        summary="Create a Payment that receives, sends or collects.",
    ),
    Route(
        "GET", "/v2/payments", payments.list_payments, needs=PAYMENTS_KEY,
        query=bodies.ListPayments,
        response=ListOf(views.PaymentView),
        summary="List Payments, newest first.",
    ),
    Route(
        "GET", "/v2/payments/{paymentId}", payments.read, needs=PAYMENTS_KEY, errors=(NotFound,),
        response=views.PaymentView,
        summary="Read a Payment.",
    ),
    Route(
        "POST", "/v2/payments/{paymentId}/cancel", payments.cancel, needs=PAYMENTS_KEY,
        errors=(NotFound, errors.InvalidState),
        response=views.PaymentView,
        summary="Cancel a Payment before funds move.",
    ),
    *REFUNDS,
    Route(
        "POST", "/v2/payments/{paymentId}/reconcile", payments.reconcile, needs=PAYMENTS_KEY,
        body=bodies.Reconcile, idempotency="required",
        errors=(
            NotFound, errors.InvalidState, errors.ReconciliationActionNotAllowed,
            errors.AccountSuspended, errors.ResourceConflict, errors.CapabilityNotActive,
            errors.DestinationNotAllowed, errors.ScreeningRefused, *VAULT_SPENDING,
        ),
        response=views.PaymentView,
        summary="Resolve a Payment that needs a decision.",
    ),
    Route(
        "GET", "/v2/payments/{paymentId}/receipts", payments.read_receipts, needs=PAYMENTS_KEY,
        query=PageQuery, errors=(NotFound,),
        response=receipt_views.ReceiptsView,
        summary="List a Payment's receipts with its journal.",
    ),
)  # fmt: skip
