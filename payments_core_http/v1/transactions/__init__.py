"""Transactions: rows, queries, handlers, views."""
