"""Capabilities and bank accounts of accounts."""
