"""Payment settings: a partner's rules for all Payments of an environment."""
