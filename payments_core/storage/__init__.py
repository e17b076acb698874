"""Storage: the port, its documents, and the adapters that ship with the library."""
