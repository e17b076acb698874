"""A shop on Django, which has the service in its own processes."""
