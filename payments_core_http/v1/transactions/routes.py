"""Rows of transactions."""

from __future__ import annotations

from payments_core import errors
from payments_core_http.routing import Route
from payments_core_http.v1.requirements import PAYMENTS_KEY
from payments_core_http.v1.transactions import bodies, views
from payments_core_http.v1.transactions import handlers as transactions

LEGACY_TRANSACTIONS = (
    Route(
        "GET", "/sdk/v1/get-transaction", transactions.read, needs=PAYMENTS_KEY,
        query=bodies.OneTransaction, errors=(errors.NotFound,),
        response=views.TransactionResponse, operation="readLegacyTransaction",
        summary="Read a transaction.",
    ),
    Route(
        "GET", "/sdk/v1/get-transactions", transactions.list_, needs=PAYMENTS_KEY,
        query=bodies.TransactionsQuery, errors=(errors.NotFound,),
        response=views.TransactionsResponse, operation="listLegacyTransactions",
        summary="List an account's transactions, newest first.",
    ),
)  # fmt: skip
