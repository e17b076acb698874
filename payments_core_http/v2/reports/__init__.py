"""The routes of reports: rows, queries, handlers, views."""
