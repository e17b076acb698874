"""Rows of `/v2/client/me`."""

from __future__ import annotations

from payments_core import errors
from payments_core.errors import NotFound
from payments_core_http.routing import ListOf, Route
from payments_core_http.v2.client import bodies, handlers, views
from payments_core_http.v2.payments.views import CreatedPaymentView
from payments_core_http.v2.requirements import ACCOUNT_READS, RECIPIENT_READS, RECIPIENT_WRITES
from payments_core_http.wire.query import PageQuery

OWN = (
    Route(
        "GET", "/v2/client/me", handlers.read, needs=ACCOUNT_READS, errors=(NotFound,),
        response=views.OwnAccountView, operation="readOwnAccount",
        summary="Read the token's account, and what the token may do now.",
    ),
    Route(
        "GET", "/v2/client/me/payments", handlers.list_payments, needs=RECIPIENT_READS,
        query=PageQuery,
        response=ListOf(views.RecipientPaymentView), operation="listOwnPayments",
        summary="List the Payments that the account receives, newest first.",
    ),
    Route(
        "POST", "/v2/client/me/payments", handlers.create_payment, needs=RECIPIENT_WRITES,
        body=bodies.CreateOwnPayment, success=201, idempotency="required",
        errors=(
            errors.AmountOutOfRange, errors.UnsupportedChain, errors.UnsupportedAsset,
            errors.AccountSuspended,
        ),
        response=CreatedPaymentView, operation="createOwnPayment",
        summary="Create a receive Payment to the account.",
    ),
    Route(
        "GET", "/v2/client/me/payments/{paymentId}", handlers.read_payment,
        needs=RECIPIENT_READS, may_have_payment_secret=True, errors=(NotFound,),
        response=views.RecipientPaymentView | views.PayerPaymentView,
        operation="readOwnPayment",
        summary="Read a Payment that the account receives, or, with the Payment's secret, pays.",
    ),
)  # fmt: skip
