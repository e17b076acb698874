"""The pages on which an environment's operator looks after Payments and webhooks."""
