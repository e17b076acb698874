"""Rows of an account's capability activations and bank accounts."""

from __future__ import annotations

from payments_core import errors
from payments_core.errors import NotFound
from payments_core_http.routing import ListOf, Route
from payments_core_http.v2.bank_accounts import bodies, views
from payments_core_http.v2.bank_accounts import handlers as bank_accounts
from payments_core_http.v2.requirements import ACCOUNTS_KEY, PAYOUTS_KEY
from payments_core_http.wire.query import PageQuery

BANK_ACCOUNTS = (
    Route(
        "POST", "/v2/accounts/{accountId}/capability-activations",
        bank_accounts.activate_capability,
        needs=ACCOUNTS_KEY, product_of=bodies.find_product,
        body=bodies.ActivateCapability, success=202,
        errors=(
            NotFound, errors.AccountSuspended, errors.CapabilityNotActive,
            errors.EntitlementRequired, errors.ResourceConflict,
        ),
        response=views.CapabilityActivationView,
        summary="Request a capability; returns its requirements.",
    ),
    Route(
        "GET", "/v2/accounts/{accountId}/bank-account-requirements",
        bank_accounts.read_requirements, needs=ACCOUNTS_KEY, errors=(NotFound,),
        response=views.BankAccountRequirementsView,
        summary="Read whether bank accounts can be added, and the fields of a new one.",
    ),
    Route(
        "POST", "/v2/accounts/{accountId}/bank-accounts", bank_accounts.add,
        needs=PAYOUTS_KEY, body=bodies.AddBankAccount, success=201,
        errors=(
            NotFound, errors.AccountSuspended, errors.CapabilityNotActive,
        ),
        response=views.BankAccountView,
        summary="Add a US bank account, which the bank reviews.",
    ),
    Route(
        "GET", "/v2/accounts/{accountId}/bank-accounts", bank_accounts.list_bank_accounts,
        needs=ACCOUNTS_KEY, query=PageQuery, errors=(NotFound,),
        response=ListOf(views.BankAccountView),
        summary="List an account's bank accounts, newest first.",
    ),
)  # fmt: skip
