"""Idempotency keys: one effect and one answer, however often a request comes (contract §4)."""
