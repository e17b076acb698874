"""Reusable on-ramps of accounts."""
