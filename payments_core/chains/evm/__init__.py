"""EVM chains: our contracts, and the port over JSON-RPC nodes."""
