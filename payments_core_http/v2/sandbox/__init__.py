"""The routes of sandbox: rows, bodies, handlers, views."""
