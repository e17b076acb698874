"""Payouts: what a send pays to a US bank account (contract §7)."""
