"""The routes of the public checkout: rows, bodies, handlers, views."""
