"""Rows of the audit trail."""

from __future__ import annotations

from payments_core_http.routing import ListOf, Route
from payments_core_http.v2.audit import bodies, handlers, views
from payments_core_http.v2.requirements import CONSOLE_KEY

AUDIT = (
    Route(
        "GET", "/v2/console/audit", handlers.list_entries, needs=CONSOLE_KEY,
        query=bodies.ListAuditEntries, response=ListOf(views.AuditEntryView),
        operation="listAuditEntries",
        summary="List who changed what in the environment, newest first.",
    ),
)  # fmt: skip
