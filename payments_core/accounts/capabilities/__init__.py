"""Capabilities: the regulated bank flows that an account may use (contract §7)."""
