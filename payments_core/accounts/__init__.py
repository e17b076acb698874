"""Accounts: a partner's users, with their wallets, vaults and settlement preference."""
