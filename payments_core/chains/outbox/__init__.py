"""Our transfers: recorded, given a nonce, signed, stored and only then broadcast."""
