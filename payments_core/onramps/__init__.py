"""Reusable on-ramps: bank transfers to an account's own number, credited as stablecoins."""
