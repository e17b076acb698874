"""Who may do what: secrets and their digests, sealed tokens, the key ring, authorization."""
