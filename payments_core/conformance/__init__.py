"""Suites that prove an adapter keeps its port's promises; none of them needs pytest to import."""
