"""Rows of quotes."""

from __future__ import annotations

from payments_core import errors
from payments_core.errors import NotFound
from payments_core_http.routing import Route
from payments_core_http.v1.quotes import bodies, views
from payments_core_http.v1.quotes import handlers as quotes
from payments_core_http.v1.requirements import ANYBODY_PAYMENTS

_QUOTE_ERRORS = (
    NotFound, errors.AmountOutOfRange, errors.CapabilityNotActive, errors.DependencyFailed,
    errors.DestinationNotAllowed, errors.UnsupportedAsset, errors.UnsupportedChain,
)  # fmt: skip

LEGACY_QUOTES = (
    Route(
        "POST", "/sdk/v1/quote", quotes.create_quote, needs=ANYBODY_PAYMENTS,
        credential="basic_app_id", body=bodies.AskQuote, idempotency="ignored",
        policy="legacy_quotes", creation_policy="legacy_quotes_minute", errors=_QUOTE_ERRORS,
        response=views.QuoteResponse, operation="createLegacyQuote",
        summary="Quote a transfer, on one chain or across two, with its own deposit address.",
    ),
    Route(
        "POST", "/sdk/v1/get-deposit-address", quotes.create_deposit_address,
        needs=ANYBODY_PAYMENTS, credential="sdk_key", body=bodies.AskDepositAddress,
        idempotency="ignored", policy="legacy_quotes",
        creation_policy="legacy_quoted_addresses_minute", errors=_QUOTE_ERRORS,
        response=views.QuotedAddressResponse, operation="createLegacyDepositAddress",
        summary="Give a payer an address for one payment to a payment address.",
    ),
    Route(
        "POST", "/sdk/v1/verify-transfer", quotes.verify_transfer, needs=ANYBODY_PAYMENTS,
        credential="basic_app_id", body=bodies.VerifyTransfer, idempotency="ignored",
        errors=(NotFound, errors.UnsupportedChain),
        response=views.TransferStateResponse, operation="verifyLegacyTransfer",
        summary="Check whether the transfer of a quote, or to a deposit address, is done.",
    ),
    Route(
        "GET", "/sdk/v1/verify-transfer", quotes.verify_transfer_by_query,
        needs=ANYBODY_PAYMENTS, credential="basic_app_id", query=bodies.VerifyTransfer,
        errors=(NotFound, errors.UnsupportedChain),
        response=views.TransferStateResponse, operation="readLegacyTransfer",
        summary="Check the same, with the fields in the query string.",
    ),
)  # fmt: skip
