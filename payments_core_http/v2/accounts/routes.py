"""Rows of accounts."""

from __future__ import annotations

from payments_core import errors
from payments_core.errors import NotFound
from payments_core_http.routing import ListOf, Route
from payments_core_http.v2.accounts import bodies, views
from payments_core_http.v2.accounts import handlers as accounts
from payments_core_http.v2.requirements import ACCOUNTS_KEY

ACCOUNTS = (
    Route(
        "POST", "/v2/accounts", accounts.create, needs=ACCOUNTS_KEY,
        body=bodies.CreateAccount, success=201,
        errors=(
            errors.ResourceConflict, errors.UsernameTaken, errors.UnsupportedChain,
            errors.UnsupportedAsset, errors.ScreeningRefused, errors.DependencyFailed,
            errors.StorageLimitReached,
        ),
        response=views.AccountView,
        summary="Create an account, with a vault on every chain.",
    ),
    Route(
        "GET", "/v2/accounts", accounts.list_accounts, needs=ACCOUNTS_KEY,
        query=bodies.ListAccounts,
        response=ListOf(views.AccountView),
        summary="List accounts, newest first.",
    ),
    Route(
        "GET", "/v2/accounts/{accountId}", accounts.read, needs=ACCOUNTS_KEY, errors=(NotFound,),
        response=views.AccountView,
        summary="Read an account.",
    ),
    Route(
        "PATCH", "/v2/accounts/{accountId}", accounts.change, needs=ACCOUNTS_KEY,
        body=bodies.ChangeAccount,
        errors=(NotFound, errors.InvalidState, errors.StorageLimitReached),
        response=views.AccountView,
        summary="Change an account's email, metadata or status.",
    ),
    Route(
        "PUT", "/v2/accounts/{accountId}/settlement-preferences", accounts.set_settlement,
        needs=ACCOUNTS_KEY, body=bodies.Settlement,
        errors=(
            NotFound, errors.AccountSuspended, errors.UnsupportedChain, errors.UnsupportedAsset,
        ),
        response=views.AccountView,
        summary="Set the chain and asset in which the account is to be paid.",
    ),
    Route(
        "PUT", "/v2/accounts/{accountId}/handle", accounts.set_handle, needs=ACCOUNTS_KEY,
        body=bodies.Handle,
        errors=(NotFound, errors.AccountSuspended, errors.InvalidState, errors.UsernameTaken),
        response=views.AccountView,
        summary="Give an account its username, once.",
    ),
    Route(
        "GET", "/v2/accounts/{accountId}/capabilities", accounts.read_capabilities,
        needs=ACCOUNTS_KEY, errors=(NotFound,),
        response=views.CapabilitiesView,
        summary="List the bank flows that the account can use, and what is missing.",
    ),
    Route(
        "GET", "/v2/accounts/{accountId}/balances", accounts.read_balances, needs=ACCOUNTS_KEY,
        errors=(NotFound, errors.DependencyFailed),
        response=views.BalancesView,
        summary="Read what the account's vaults hold, at the newest final block.",
    ),
)  # fmt: skip
