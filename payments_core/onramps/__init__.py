"""Reusable on-ramps: bank transfers to a number of an account's own, credited as stablecoins."""
