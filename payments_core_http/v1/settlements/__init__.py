"""Settlements of quotes: a row, a body, a handler, a view."""
