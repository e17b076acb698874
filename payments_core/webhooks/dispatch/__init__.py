"""The worker's side of webhooks: claims, attempts, concurrency, the threads that send."""
