"""Idempotency keys: one effect and one response, however often a request comes (contract §4)."""
