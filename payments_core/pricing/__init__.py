"""What quotes cost: the port to a source of prices, and a table of fixed ones."""
