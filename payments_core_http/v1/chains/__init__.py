"""Chains and balances: rows, bodies, handlers, views."""
