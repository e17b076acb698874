"""Payouts: sends to a US bank account (contract §7)."""
