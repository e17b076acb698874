"""The routes of payments: rows, bodies, handlers, views."""
