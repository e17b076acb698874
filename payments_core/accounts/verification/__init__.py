"""KYC: whether a provider has verified who is behind an account."""
