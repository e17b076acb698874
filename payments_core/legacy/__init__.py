"""The parts of the core that only the legacy interface needs."""
