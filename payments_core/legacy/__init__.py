"""What the legacy interface alone needs of the core."""
