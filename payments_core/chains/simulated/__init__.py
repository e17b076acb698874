"""A simulated chain in storage: blocks, transfers, reorgs and ordered failures."""
