"""Offers of providers: quotes of routers and orders of hosted on-ramps, until they are settled."""
