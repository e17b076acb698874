"""Money Accounts: rows, bodies, handlers, views."""
