"""A private anvil node for the demo, the sandbox and tests: found, started, mined."""
