"""The routes of accounts: rows, bodies, handlers, views."""
