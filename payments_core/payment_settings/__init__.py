"""Payment settings: what a partner decides once for the Payments of an environment."""
