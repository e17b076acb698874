"""Checkout for payers without an account: links, public Payments, public options."""
