"""Rows of reports."""

from __future__ import annotations

from payments_core_http.routing import ListOf, Route
from payments_core_http.v2.reports import bodies, handlers, views
from payments_core_http.v2.requirements import PAYMENTS_KEY

REPORTS = (
    Route(
        "GET", "/v2/reports/balance", handlers.read_balances, needs=PAYMENTS_KEY,
        query=bodies.ReportPeriod, response=ListOf(views.BalanceRowView), has_csv=True,
        operation="readBalanceReport",
        summary="Read the balance of each account of the journal on each day of a period.",
    ),
    Route(
        "GET", "/v2/reports/transactions", handlers.read_transactions, needs=PAYMENTS_KEY,
        query=bodies.ReportPeriod, response=ListOf(views.TransactionRowView), has_csv=True,
        operation="readTransactionReport",
        summary="List every movement of a period, oldest first.",
    ),
    Route(
        "GET", "/v2/reports/payouts", handlers.read_payouts, needs=PAYMENTS_KEY,
        query=bodies.ReportPeriod, response=ListOf(views.PayoutRowView), has_csv=True,
        operation="readPayoutReport",
        summary="List the payouts whose Payments were created in a period, newest first.",
    ),
)  # fmt: skip
