"""The route of the audit trail: rows, query, handler, views."""
