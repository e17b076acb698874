"""The routes of a client token's own account: rows, bodies, handlers, views."""
