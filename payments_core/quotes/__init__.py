"""Quotes: the frozen terms of a transfer, each with its own deposit address."""
