"""Rows of an account's reusable on-ramps."""

from __future__ import annotations

from payments_core import errors
from payments_core.errors import NotFound
from payments_core_http.routing import ListOf, Route
from payments_core_http.v2.onramps import bodies, views
from payments_core_http.v2.onramps import handlers as onramps
from payments_core_http.v2.requirements import ACCOUNTS_KEY, FUNDING_KEY
from payments_core_http.wire.query import PageQuery

_ONRAMPS = "/v2/accounts/{accountId}/onramp-bank-accounts"

ONRAMPS = (
    Route(
        "GET", "/v2/accounts/{accountId}/onramp-bank-account-requirements",
        onramps.read_requirements, needs=ACCOUNTS_KEY, errors=(NotFound,),
        response=views.OnrampRequirementsView,
        summary="Read whether on-ramps can be added, and the fields of a new one.",
    ),
    Route(
        "POST", _ONRAMPS, onramps.add,
        needs=FUNDING_KEY, body=bodies.AddOnrampAccount, success=201,
        errors=(
            NotFound, errors.AccountSuspended, errors.CapabilityNotActive,
            errors.UnsupportedChain, errors.UnsupportedAsset, errors.DestinationNotAllowed,
            errors.ResourceConflict,
        ),
        response=views.OnrampBankAccountView,
        summary="Add a reusable on-ramp; the bank assigns its account number.",
    ),
    Route(
        "GET", _ONRAMPS, onramps.list_onramps, needs=ACCOUNTS_KEY, query=PageQuery,
        errors=(NotFound,), response=ListOf(views.OnrampBankAccountView),
        summary="List an account's on-ramps, newest first.",
    ),
    Route(
        "GET", _ONRAMPS + "/{onrampBankAccountId}/deposit-instructions",
        onramps.read_instructions, needs=ACCOUNTS_KEY, errors=(NotFound, errors.InvalidState),
        response=views.DepositInstructionsView,
        summary="Read the account number that others send money to.",
    ),
    Route(
        "GET", _ONRAMPS + "/{onrampBankAccountId}/transactions",
        onramps.list_transactions, needs=ACCOUNTS_KEY, query=PageQuery,
        errors=(NotFound,), response=ListOf(views.BankTransactionView),
        summary="List the bank transfers to an on-ramp, newest first.",
    ),
)  # fmt: skip
