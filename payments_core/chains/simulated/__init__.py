"""A simulated chain in storage: blocks, transfers, reorgs and failures on order."""
