"""Rows of deposit addresses and deposits."""

from __future__ import annotations

from payments_core import errors
from payments_core.errors import NotFound
from payments_core.tenants.authorization import Requirement
from payments_core_http.routing import ListOf, Route
from payments_core_http.v2.deposits import bodies, views
from payments_core_http.v2.deposits import handlers as deposits
from payments_core_http.wire.query import PageQuery

DEPOSITS_KEY = Requirement("server", scopes=("v2:deposit_addresses",))
DEPOSITOR_READS = Requirement("client", permissions=("deposits:read",))
DEPOSITOR_WRITES = Requirement("client", permissions=("deposits:write",))

_ISSUE_ERRORS = (NotFound, errors.AccountSuspended, errors.UnsupportedChain)

DEPOSITS = (
    Route(
        "POST", "/v2/accounts/{accountId}/deposit-addresses", deposits.issue, needs=DEPOSITS_KEY,
        body=bodies.IssueAddress, success=201, success_if_existing=200, errors=_ISSUE_ERRORS,
        response=views.DepositAddressView, operation="issueDepositAddress",
        summary="Get the account's deposit address on a chain; 200 if it has one.",
    ),
    Route(
        "GET", "/v2/accounts/{accountId}/deposit-addresses", deposits.list_addresses,
        needs=DEPOSITS_KEY, query=PageQuery, errors=(NotFound,),
        response=ListOf(views.DepositAddressView),
        summary="List an account's deposit addresses.",
    ),
    Route(
        "POST", "/v2/accounts/{accountId}/deposit-addresses/check", deposits.check,
        needs=DEPOSITS_KEY, body=bodies.CheckDeposits,
        errors=(NotFound, errors.UnsupportedChain, errors.DependencyFailed),
        response=views.CheckView, operation="checkDeposits",
        summary="Look for an account's deposits now, and send failed sweeps again.",
    ),
    Route(
        "GET", "/v2/accounts/{accountId}/deposits", deposits.list_deposits, needs=DEPOSITS_KEY,
        query=bodies.DepositsQuery, errors=(NotFound,),
        response=ListOf(views.DepositView),
        summary="List an account's deposits, newest first.",
    ),
    Route(
        "POST", "/v2/accounts/{accountId}/deposits/{depositId}/return", deposits.send_back,
        needs=DEPOSITS_KEY, body=bodies.ReturnDeposit, idempotency="required",
        errors=(
            NotFound, errors.UnsupportedChain, errors.InvalidState, errors.ResourceConflict,
            errors.DestinationNotAllowed, errors.ScreeningRefused, errors.DependencyFailed,
        ),
        response=views.DepositView, operation="returnDeposit",
        summary="Send a rejected deposit back, on its own chain.",
    ),
    Route(
        "POST", "/v2/client/me/deposit-addresses", deposits.issue_own, needs=DEPOSITOR_WRITES,
        body=bodies.IssueAddress, success=201, success_if_existing=200, errors=_ISSUE_ERRORS,
        response=views.DepositAddressView, operation="issueOwnDepositAddress",
        summary="Get the caller's own deposit address on a chain; 200 if it has one.",
    ),
    Route(
        "GET", "/v2/client/me/deposit-addresses", deposits.list_own_addresses,
        needs=DEPOSITOR_READS, query=PageQuery,
        response=ListOf(views.DepositAddressView), operation="listOwnDepositAddresses",
        summary="List the caller's own deposit addresses.",
    ),
)  # fmt: skip
