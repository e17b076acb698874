"""The port to whoever exchanges one asset for another, also across chains; a simulated router."""
