"""The routes of refunds: rows, bodies, handlers, views."""
