"""The storage in a SQLite file; `adapter.py` is its entry."""
