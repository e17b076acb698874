"""Vaults: an account's funds on each chain, the policy over them, and the reserved amounts."""
