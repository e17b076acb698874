"""Prices of quotes: the port to a source of prices, and a table of fixed prices."""
