"""Rows of Payments."""

from __future__ import annotations

from payments_core import errors
from payments_core.errors import NotFound
from payments_core_http.query import PageQuery
from payments_core_http.routing import ListOf, Route
from payments_core_http.v2 import payment_views as views
from payments_core_http.v2 import payments, queries, refunds
from payments_core_http.v2.bodies import payments as bodies
from payments_core_http.v2.refund_views import RefundView
from payments_core_http.v2.routes.requirements import PAYMENTS_KEY

_VAULT = (
    errors.PolicyInactive, errors.PolicyDenied, errors.InsufficientBalance,
    errors.DependencyFailed,
)  # fmt: skip
_NEW_PAYMENT = (
    NotFound, errors.AmountOutOfRange, errors.UnsupportedChain, errors.UnsupportedAsset,
    errors.DestinationNotAllowed, errors.CapabilityNotActive, errors.AccountSuspended,
    errors.InvalidState, *_VAULT,
)  # fmt: skip

PAYMENTS = (
    Route(
        "POST", "/v2/payments", payments.create, needs=PAYMENTS_KEY,
        body=bodies.AnyPayment, success=201, idempotency="required", errors=_NEW_PAYMENT,
        answers=views.CreatedPaymentView | views.PaymentView,
        summary="Create a Payment that receives, sends or collects.",
    ),
    Route(
        "GET", "/v2/payments", payments.list_payments, needs=PAYMENTS_KEY,
        query=queries.Payments,
        answers=ListOf(views.PaymentView),
        summary="List Payments, newest first.",
    ),
    Route(
        "GET", "/v2/payments/{paymentId}", payments.read, needs=PAYMENTS_KEY, errors=(NotFound,),
        answers=views.PaymentView,
        summary="Read a Payment.",
    ),
    Route(
        "POST", "/v2/payments/{paymentId}/cancel", payments.cancel, needs=PAYMENTS_KEY,
        errors=(NotFound, errors.InvalidState),
        answers=views.PaymentView,
        summary="Cancel a Payment before funds move.",
    ),
    Route(
        "POST", "/v2/payments/{paymentId}/refunds", refunds.create, needs=PAYMENTS_KEY,
        body=bodies.CreateRefund, success=201, idempotency="required",
        errors=(
            NotFound, errors.AmountOutOfRange, errors.InvalidState, errors.DestinationNotAllowed,
            errors.Conflicting, *_VAULT,
        ),
        answers=RefundView,
        summary="Send received funds back, all or part of them.",
    ),
    Route(
        "GET", "/v2/payments/{paymentId}/refunds", refunds.list_refunds, needs=PAYMENTS_KEY,
        query=PageQuery, errors=(NotFound,),
        answers=ListOf(RefundView),
        summary="List the refunds of a Payment, newest first.",
    ),
    Route(
        "POST", "/v2/payments/{paymentId}/reconcile", payments.reconcile, needs=PAYMENTS_KEY,
        body=bodies.Reconcile, idempotency="required",
        errors=(
            NotFound, errors.InvalidState, errors.ReconciliationActionNotAllowed,
            errors.AccountSuspended, errors.Conflicting, *_VAULT,
        ),
        answers=views.PaymentView,
        summary="Decide about a Payment that went out of the ordinary.",
    ),
    Route(
        "GET", "/v2/payments/{paymentId}/receipts", payments.receipts, needs=PAYMENTS_KEY,
        query=PageQuery, errors=(NotFound,),
        answers=views.ReceiptsView,
        summary="What a Payment received, and its journal: where the money is.",
    ),
)  # fmt: skip
