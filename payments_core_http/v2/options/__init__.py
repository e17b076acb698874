"""The routes of options: rows, bodies, handlers, views."""
