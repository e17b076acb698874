"""Rows of `/v2/client/me`."""

from __future__ import annotations

from payments_core import errors
from payments_core.errors import NotFound
from payments_core_http.query import PageQuery
from payments_core_http.routing import ListOf, Route
from payments_core_http.v2 import client_me, client_views, option_views, options
from payments_core_http.v2.bodies import client as bodies
from payments_core_http.v2.payment_views import CreatedPaymentView
from payments_core_http.v2.routes.requirements import (
    ACCOUNT_READS,
    PAYER_PAYS,
    PAYER_READS,
    RECIPIENT_ASKS,
    RECIPIENT_READS,
)

_PAYER = (NotFound, errors.PaymentExpired, errors.InvalidState, errors.AccountSuspended)
_ACTION = (
    errors.OptionSuperseded, errors.OptionExpired, errors.ActionAlreadyUsed, errors.ActionInvalid,
    errors.ActionExpired,
)  # fmt: skip
_MONEY = (
    errors.PolicyInactive, errors.PolicyDenied, errors.InsufficientBalance,
    errors.DependencyFailed,
)  # fmt: skip

OWN = (
    Route(
        "GET", "/v2/client/me", client_me.read, needs=ACCOUNT_READS, errors=(NotFound,),
        answers=client_views.OwnAccountView, operation="readOwnAccount",
        summary="The token's account, and what the token may do now.",
    ),
    Route(
        "GET", "/v2/client/me/payments", client_me.list_payments, needs=RECIPIENT_READS,
        query=PageQuery,
        answers=ListOf(client_views.RecipientPaymentView), operation="listOwnPayments",
        summary="List the Payments that the account receives, newest first.",
    ),
    Route(
        "POST", "/v2/client/me/payments", client_me.create_payment, needs=RECIPIENT_ASKS,
        body=bodies.CreateOwnPayment, success=201, idempotency="required",
        errors=(
            errors.AmountOutOfRange, errors.UnsupportedChain, errors.UnsupportedAsset,
            errors.AccountSuspended,
        ),
        answers=CreatedPaymentView, operation="createOwnPayment",
        summary="Create a receive Payment to the account.",
    ),
    Route(
        "GET", "/v2/client/me/payments/{paymentId}", client_me.read_payment,
        needs=RECIPIENT_READS, may_have_payment_secret=True, errors=(NotFound,),
        answers=client_views.RecipientPaymentView | client_views.PayerPaymentView,
        operation="readOwnPayment",
        summary="Read a Payment that the account receives, or, with the Payment's secret, pays.",
    ),
)  # fmt: skip

PAYER = (
    Route(
        "POST", "/v2/client/me/payments/{paymentId}/options", options.create, needs=PAYER_PAYS,
        with_payment_secret=True, body=bodies.CreateOption, success=201,
        errors=(
            *_PAYER, errors.OptionLocked, errors.PaymentOptionLimitReached,
            errors.CapabilityNotActive, errors.UnsupportedChain, errors.UnsupportedAsset,
        ),
        answers=option_views.PaymentOption,
        summary="Offer the caller's vault as a way to pay, and select it.",
    ),
    Route(
        "GET", "/v2/client/me/payments/{paymentId}/options", options.list_options,
        needs=PAYER_READS, with_payment_secret=True, query=PageQuery, errors=(NotFound,),
        answers=ListOf(option_views.FundedOption),
        summary="List the caller's options of a Payment.",
    ),
    Route(
        "GET", "/v2/client/me/payments/{paymentId}/options/{optionId}", options.read,
        needs=PAYER_READS, with_payment_secret=True, errors=(NotFound,),
        answers=option_views.FundedOption,
        summary="Read an option and its funding operation.",
    ),
    Route(
        "POST", "/v2/client/me/payments/{paymentId}/options/{optionId}/refresh", options.refresh,
        needs=PAYER_PAYS, with_payment_secret=True,
        errors=(*_PAYER, errors.OptionSuperseded, errors.OptionExpired),
        answers=option_views.PaymentOption,
        summary="Get a new one-time action for an option.",
    ),
    Route(
        "POST", "/v2/client/me/payments/{paymentId}/options/{optionId}/authorize",
        options.authorize, needs=PAYER_PAYS, with_payment_secret=True, body=bodies.Authorize,
        idempotency="required", errors=(*_PAYER, *_ACTION, *_MONEY),
        answers=option_views.FundedOption,
        summary="Authorize exactly one transfer from the caller's vault to the escrow.",
    ),
)  # fmt: skip
