"""Quotes: what a transfer will bring, frozen, with an address of its own to be paid at."""
