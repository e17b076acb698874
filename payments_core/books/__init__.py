"""The books of an environment by periods: movements, exports, and the comparison with the world."""
