"""Your own chain adapter, from a node to a Payment: `docs/how-to/write-a-chain-adapter.md`."""
