"""The pages on which an environment's operator manages Payments and webhooks."""
