"""Work that commits with the change that needs it and is done later by a worker."""
