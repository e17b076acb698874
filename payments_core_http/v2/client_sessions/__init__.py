"""The routes of client sessions: rows, bodies, handlers, views."""
