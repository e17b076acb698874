"""Settlements: a payer's wallet signs a quote's payment from the payer's vault."""
