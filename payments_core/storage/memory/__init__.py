"""The storage in memory, the reference model; `adapter.py` is its entry."""
