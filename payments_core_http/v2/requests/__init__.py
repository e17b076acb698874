"""The routes of the request log: rows, bodies, handlers, views."""
