"""Hosted on-ramps: payers pay a provider in a currency, and it pays the Payment's escrow."""
