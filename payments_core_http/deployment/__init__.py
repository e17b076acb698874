"""A deployment: its configuration, the service made from it, and the life of its processes."""
