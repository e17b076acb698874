"""The routes of verifications: rows, bodies, handlers, views."""
