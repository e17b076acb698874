"""Quotes: rows, bodies, handlers, views."""
