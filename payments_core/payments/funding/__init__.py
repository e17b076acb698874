"""Vault funding: one authorization, one transfer from a payer's vault to a Payment's escrow."""
