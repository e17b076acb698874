"""Apps, their environments, and the keys of each."""
