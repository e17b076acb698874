"""HTTP to chain nodes: one request with one deadline, and fields read from JSON answers."""
