"""Checkout for payers without an account: public Payments, public options."""
