"""The routes of disputes: rows, bodies, handlers, views."""
