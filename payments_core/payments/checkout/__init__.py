"""Checkout for payers without an account: links, public Payments, direct options."""
