"""Follows each transaction to an escrow until it is proof, or has failed."""
