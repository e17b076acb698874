"""Chains: the port, the judge of what a transaction proves, and the simulated chain."""
