"""KYC: whether a provider has verified the identity of an account's user."""
