"""Screening: whether a provider lets money move to a subject, or from it (contract §14)."""
