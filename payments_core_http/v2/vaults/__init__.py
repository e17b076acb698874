"""The routes of vaults: rows, bodies, handlers, views."""
