"""Settlements: a payer's wallet signs that a quote is paid from the payer's vault."""
