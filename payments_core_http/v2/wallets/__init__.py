"""The routes of wallets: rows, bodies, handlers, views."""
