"""Transactions of the legacy interface: views of Payments, deposits and refunds."""
