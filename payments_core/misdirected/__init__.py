"""Funds that arrive at an address of ours and do not count, and their way back (contract §6)."""
