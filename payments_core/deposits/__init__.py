"""Deposit addresses, and the deposits that arrive at them (contract §5)."""
