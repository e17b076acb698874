"""Rows of a payer's own part of public checkout."""

from __future__ import annotations

from payments_core import errors
from payments_core.errors import NotFound
from payments_core.payments.checkout.checkout import PAYER
from payments_core_http.routing import Route
from payments_core_http.v2.options.public_views import PublicPaymentOption
from payments_core_http.v2.public import bodies
from payments_core_http.v2.public import handlers as public
from payments_core_http.v2.public import views as public_views

_PATH = "/v2/public/payments/{paymentId}"
_ACTION_ERRORS = (NotFound, errors.PaymentExpired, errors.InvalidState)

CHECKOUT = (
    Route(
        "GET", _PATH, public.read_payment, needs=PAYER, errors=(NotFound,),
        response=public_views.PublicPaymentView,
        operation="readPublicPayment",
        summary="Read the Payment, with its options without an account.",
    ),
    Route(
        "GET", f"{_PATH}/state", public.read_state, needs=PAYER, errors=(NotFound,),
        policy="payment_state", has_etag=True,
        response=public_views.CheckoutStateView,
        operation="readPublicPaymentState",
        summary="Poll the Payment's state; 304 while it has not changed.",
    ),
    Route(
        "GET", f"{_PATH}/methods", public.list_methods, needs=PAYER, errors=(NotFound,),
        response=public_views.MethodsView,
        operation="listPublicMethods",
        summary="List the ways to pay without an account.",
    ),
    Route(
        "POST", f"{_PATH}/options", public.create_option, needs=PAYER,
        body=bodies.CreatePublicOption, success=201,
        errors=(
            *_ACTION_ERRORS, errors.InsufficientPermissions, errors.OptionLocked,
            errors.PaymentOptionLimitReached, errors.CapabilityNotActive,
            errors.UnsupportedChain, errors.UnsupportedAsset, errors.DestinationNotAllowed,
            errors.ScreeningRefused, errors.DependencyFailed,
        ),
        response=PublicPaymentOption,
        operation="createPublicOption",
        summary="Offer a way to pay without an account; it is not selected yet.",
    ),
    Route(
        "GET", f"{_PATH}/options/{{optionId}}", public.read_option, needs=PAYER,
        errors=(NotFound,),
        response=PublicPaymentOption,
        operation="readPublicOption",
        summary="Read an option: where to send what, and what arrived.",
    ),
    Route(
        "POST", f"{_PATH}/options/{{optionId}}/select", public.select_option, needs=PAYER,
        errors=(
            *_ACTION_ERRORS, errors.OptionLocked, errors.OptionSuperseded, errors.OptionExpired,
        ),
        response=PublicPaymentOption,
        operation="selectPublicOption",
        summary="Select the option to pay by; the previous option is superseded.",
    ),
    Route(
        "POST", f"{_PATH}/options/{{optionId}}/refresh", public.refresh_option, needs=PAYER,
        errors=(
            *_ACTION_ERRORS, errors.OptionSuperseded, errors.OptionExpired,
            errors.PaymentOptionLimitReached, errors.CapabilityNotActive, errors.DependencyFailed,
        ),
        response=PublicPaymentOption,
        operation="refreshPublicOption",
        summary="Refresh the option: a new quote for the amount that still remains.",
    ),
    Route(
        "POST", f"{_PATH}/options/{{optionId}}/submissions", public.submit_transaction,
        needs=PAYER, body=bodies.SubmitTransaction, success=202,
        errors=(*_ACTION_ERRORS, errors.UnsupportedChain, errors.ResourceConflict),
        response=PublicPaymentOption,
        operation="submitPublicTransaction",
        summary="Submit the hash of the transfer to look for; at most five times for one option.",
    ),
    Route(
        "POST", "/v2/public/payment-links/{code}/exchange", public.exchange_link, needs=None,
        policy="payment_link",
        errors=(NotFound, errors.EntitlementRequired, errors.PaymentExpired),
        response=public_views.ExchangedLinkView,
        operation="exchangePaymentLink",
        summary="Exchange a checkout link's code for the Payment's client secret.",
    ),
)  # fmt: skip
