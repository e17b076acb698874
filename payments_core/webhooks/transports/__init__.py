"""How a delivery reaches its endpoint: the port and its adapters."""
