"""The routes of payment settings: rows, bodies, handlers, views."""
