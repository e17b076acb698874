"""Refunds: from escrow while the funds are held, later from the recipient's vault."""
