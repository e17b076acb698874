"""Rows of the options by which a payer pays from its vault, with a client token."""

from __future__ import annotations

from payments_core import errors
from payments_core.errors import NotFound
from payments_core_http.routing import ListOf, Route
from payments_core_http.v2.options import bodies, handlers, views
from payments_core_http.v2.requirements import PAYER_READS, PAYER_WRITES, VAULT_SPENDING
from payments_core_http.wire.query import PageQuery

_PAYER_ERRORS = (NotFound, errors.PaymentExpired, errors.InvalidState, errors.AccountSuspended)
_ACTION_ERRORS = (
    errors.OptionSuperseded, errors.OptionExpired, errors.ActionAlreadyUsed, errors.ActionInvalid,
    errors.ActionExpired,
)  # fmt: skip

PAYER = (
    Route(
        "POST", "/v2/client/me/payments/{paymentId}/options", handlers.create, needs=PAYER_WRITES,
        with_payment_secret=True, body=bodies.CreateOption, success=201,
        errors=(
            *_PAYER_ERRORS, errors.OptionLocked, errors.PaymentOptionLimitReached,
            errors.CapabilityNotActive, errors.UnsupportedChain, errors.UnsupportedAsset,
        ),
        response=views.PaymentOption,
        summary="Offer the caller's vault as a way to pay, and select it.",
    ),
    Route(
        "GET", "/v2/client/me/payments/{paymentId}/options", handlers.list_options,
        needs=PAYER_READS, with_payment_secret=True, query=PageQuery, errors=(NotFound,),
        response=ListOf(views.FundedOption),
        summary="List the caller's options of a Payment.",
    ),
    Route(
        "GET", "/v2/client/me/payments/{paymentId}/options/{optionId}", handlers.read,
        needs=PAYER_READS, with_payment_secret=True, errors=(NotFound,),
        response=views.FundedOption,
        summary="Read an option and its funding operation.",
    ),
    Route(
        "POST", "/v2/client/me/payments/{paymentId}/options/{optionId}/refresh", handlers.refresh,
        needs=PAYER_WRITES, with_payment_secret=True,
        errors=(*_PAYER_ERRORS, errors.OptionSuperseded, errors.OptionExpired),
        response=views.PaymentOption,
        summary="Get a new one-time action for an option.",
    ),
    Route(
        "POST", "/v2/client/me/payments/{paymentId}/options/{optionId}/authorize",
        handlers.authorize, needs=PAYER_WRITES, with_payment_secret=True, body=bodies.Authorize,
        idempotency="required", errors=(*_PAYER_ERRORS, *_ACTION_ERRORS, *VAULT_SPENDING),
        response=views.FundedOption,
        summary="Authorize exactly one transfer from the caller's vault to the escrow.",
    ),
)  # fmt: skip
