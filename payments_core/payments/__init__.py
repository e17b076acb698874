"""Payments: escrow-first, proven on chain, from creation to the release."""
