"""Funding operations: each one transfer from a payer's vault to a Payment's escrow."""
