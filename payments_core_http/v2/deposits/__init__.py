"""The routes of deposits: rows, bodies, handlers, views."""
