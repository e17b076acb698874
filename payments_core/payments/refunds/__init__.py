"""Refunds: money that goes back, from escrow while it is held, from the recipient's vault later."""
