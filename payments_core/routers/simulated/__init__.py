"""A router of the sandbox, which pays on the sandbox's own chains."""
