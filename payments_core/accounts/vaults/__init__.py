"""Vaults: an account's funds on each chain, the policy over them, and what is reserved."""
