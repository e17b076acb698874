"""The routes of webhooks: rows, bodies, handlers, views."""
