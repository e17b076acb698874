"""Limiters: the port that counts requests, and the adapters that ship with the library."""
