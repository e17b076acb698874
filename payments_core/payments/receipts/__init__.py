"""Receipts: transfers to an escrow, and what they prove."""
