"""Credentials: secrets and their digests, sealed tokens, the key ring."""
